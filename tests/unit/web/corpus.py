"""Addresses that must never be asked, and ways that lead there. `{trap}` is the port of a server nobody may ask."""

from __future__ import annotations

LITERALS = """\
http://127.0.0.1:{trap}/secret
http://127.0.0.1./secret
http://127.8.9.10/secret
http://127.255.255.254/secret
https://127.0.0.1/secret
http://0.0.0.0:{trap}/secret
http://0.1.2.3/
http://10.0.0.1/
http://10.255.255.255:8080/
http://100.64.0.1/
http://100.127.255.254/
http://100.100.100.200/latest/meta-data/
http://169.254.0.1/
http://169.254.169.254/latest/meta-data/iam/security-credentials/
http://169.254.170.2/v2/credentials
http://168.63.129.16/machine?comp=goalstate
http://172.16.0.1/
http://172.31.255.254/
http://192.168.0.1/
http://192.168.255.255/
http://192.0.0.1/
http://192.0.0.192/opc/v1/instance/
http://192.0.2.1/
http://192.88.99.1/
http://198.18.0.1/
http://198.19.255.254/
http://198.51.100.7/
http://203.0.113.7/
http://224.0.0.1/
http://239.255.255.250:1900/
http://240.0.0.1/
http://255.255.255.255/
http://[::1]:{trap}/secret
http://[0:0:0:0:0:0:0:1]/
http://[::]/
http://[::]:{trap}/secret
http://[::127.0.0.1]/
http://[::7f00:1]/
http://[::ffff:127.0.0.1]:{trap}/secret
http://[::ffff:7f00:1]/
http://[::ffff:10.0.0.1]/
http://[::ffff:169.254.169.254]/
http://[::ffff:8.8.8.8]/
http://[::ffff:0:127.0.0.1]/
http://[64:ff9b::127.0.0.1]/
http://[64:ff9b::7f00:1]/
http://[64:ff9b::a9fe:a9fe]/
http://[64:ff9b::10.1.2.3]/
http://[64:ff9b:1::7f00:1]/
http://[64:ff9b:1::808:808]/
http://[2002:7f00:1::]/
http://[2002:a00:1::1]/
http://[2002:808:808::1]/
http://[2001:0:7f00:1::1]/
http://[2001::1]/
http://[2001:10::1]/
http://[2001:20::1]/
http://[2001:db8::1]/
http://[3fff::1]/
http://[100::1]/
http://[5f00::1]/
http://[fc00::1]/
http://[fd12:3456:789a::1]/
http://[fd00:ec2::254]/latest/meta-data/
http://[fd20:ce::254]/computeMetadata/v1/
http://[fe80::1]/
http://[fe80::1%25eth0]/
http://[fe80::1%eth0]/
http://[fe80::a9fe:a9fe]/
http://[fec0::1]/
http://[ff02::1]/
http://[ff05::1:3]/
http://[4000::1]/
http://2130706433/
http://2130706433:{trap}/secret
http://017700000001/
http://0x7f000001/
http://0x7f.0.0.1/
http://0x7F.0x0.0x0.0x1/
http://0177.0.0.1/
http://0177.0.0.01:{trap}/secret
http://0000127.0.0.1/
http://127.1:{trap}/secret
http://127.0.1/
http://127.0x1/
http://10.1/
http://0/
http://0:{trap}/secret
http://3232235521/
http://2852039166/latest/meta-data/
http://0xa9fea9fe/
http://0251.0376.0251.0376/
http://1.1/
http://4294967296/
http://256.256.256.256/
http://127.0.0.0x1/
http://0x/
http://１２７.０.０.１:{trap}/secret
http://①②⑦.⓪.⓪.①/
http://127。0。0。1/
http://127｡0｡0｡1:{trap}/secret
http://ⅼocalhost:{trap}/secret
http://LOCALHOST:{trap}/secret
http://localhost.:{trap}/secret
http://localhost:{trap}/secret
http://public.test@127.0.0.1:{trap}/secret
http://public.test:80@127.0.0.1/
http://public.test%40127.0.0.1/
http://127.0.0.1%2f@public.test/
http://user:password@public.test/
http://@public.test/
http://public.test\\@127.0.0.1:{trap}/secret
http://127.0.0.1:{trap}\\.public.test/
http:\\\\127.0.0.1\\secret
http:127.0.0.1/
http:/127.0.0.1:{trap}/secret
http:///127.0.0.1/
http://%31%32%37.0.0.1/
http://127.0.0.1%00.public.test/
http://[::1
http://[::1]public.test/
http://[127.0.0.1]:{trap}/secret
http://[v1.fe80]/
http://public.test:22/
http://public.test:25/
http://public.test:6667/
http://public.test:0/
http://public.test:99999/
http://public.test:+80/
http://a..b/
http://-/
http://{long}.test/
http:///
http://
file:///etc/passwd
file://127.0.0.1/etc/passwd
ftp://public.test/
gopher://127.0.0.1:{trap}/_GET%20/secret
dict://127.0.0.1:{trap}/
ldap://127.0.0.1/
ws://127.0.0.1:{trap}/
data:text/html,hello
javascript:alert(1)
jar:http://127.0.0.1!/
//127.0.0.1:{trap}/secret
127.0.0.1:{trap}/secret
public.test
""".splitlines()

NAMED: dict[str, list[list[str]]] = {
    "loop.test": [["127.0.0.1"]],
    "loop6.test": [["::1"]],
    "any.test": [["0.0.0.0"]],
    "any6.test": [["::"]],
    "ten.test": [["10.1.2.3"]],
    "home.test": [["192.168.1.1"]],
    "office.test": [["172.20.1.1"]],
    "carrier.test": [["100.64.7.7"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "meta6.test": [["fd00:ec2::254"]],
    "azure.test": [["168.63.129.16"]],
    "alibaba.test": [["100.100.100.200"]],
    "local6.test": [["fe80::1"]],
    "zone6.test": [["fe80::1%eth0"]],
    "zoned.test": [["2606:2800:220:1::1%eth0"]],
    "unique6.test": [["fd12::1"]],
    "mapped.test": [["::ffff:127.0.0.1"]],
    "mapped-public.test": [["::ffff:93.184.215.14"]],
    "compatible.test": [["::7f00:1"]],
    "nat64.test": [["64:ff9b::7f00:1"]],
    "nat64-local.test": [["64:ff9b:1::5db8:d70e"]],
    "sixtofour.test": [["2002:7f00:1::1"]],
    "teredo.test": [["2001:0:4136:e378:8000:63bf:3fff:fdd2"]],
    "multi.test": [["224.0.0.251"]],
    "multi6.test": [["ff02::fb"]],
    "reserved.test": [["240.0.0.1"]],
    "broadcast.test": [["255.255.255.255"]],
    "bench.test": [["198.18.1.1"]],
    "doc.test": [["203.0.113.1"]],
    "first-good.test": [["93.184.215.14", "127.0.0.1"]],
    "last-good.test": [["127.0.0.1", "93.184.215.14"]],
    "mixed-six.test": [["93.184.215.14", "::1"]],
    "mixed-many.test": [["93.184.215.14", "151.101.1.69", "8.8.8.8", "10.0.0.9"]],
    "mixed-mapped.test": [["93.184.215.14", "::ffff:10.0.0.9"]],
    "nowhere.test": [[]],
}
"""Names, and what they resolve to."""

STATUSES = (301, 302, 303, 307, 308)

LOCATIONS = """\
http://127.0.0.1:{trap}/secret
http://localhost:{trap}/secret
http://localhost.:{trap}/secret
http://loop.test:{trap}/secret
http://first-good.test/secret
http://[::1]:{trap}/secret
http://[::ffff:127.0.0.1]:{trap}/secret
http://[64:ff9b::7f00:1]:{trap}/secret
http://2130706433:{trap}/secret
http://0x7f.1:{trap}/secret
http://0177.0.0.1:{trap}/secret
http://127.1:{trap}/secret
http://0:{trap}/secret
http://①②⑦.⓪.⓪.①:{trap}/secret
http://169.254.169.254/latest/meta-data/
http://metadata.google.internal/computeMetadata/v1/
http://100.100.100.200/
http://10.0.0.1/
http://192.168.0.1/
http://[fe80::1]/
//127.0.0.1:{trap}/secret
//localhost:{trap}/secret
/\\127.0.0.1:{trap}/secret
\\\\127.0.0.1:{trap}\\secret
http:\\\\127.0.0.1:{trap}/secret
http://public.test@127.0.0.1:{trap}/secret
http://user:pass@public.test/
http://public.test\\@127.0.0.1:{trap}/secret
http://public.test:22/
file:///etc/passwd
ftp://127.0.0.1/
gopher://127.0.0.1:{trap}/_GET
data:text/plain,hello
javascript:alert(1)
http://
http:///secret
https://127.0.0.1:{trap}/secret
HTTP://127.0.0.1:{trap}/secret
http://%31%32%37.0.0.1:{trap}/secret
""".splitlines()
"""Where redirects of a public site lead that must not be followed."""


def spelled(lines: list[str], trap: int) -> list[str]:
    return [line.replace("{trap}", str(trap)).replace("{long}", "a" * 64) for line in lines]
