"""Which file systems belong to the kernel: their files look regular and are not."""

from __future__ import annotations

import os

_TYPES = frozenset(
    b"proc sysfs cgroup cgroup2 debugfs tracefs securityfs selinuxfs smackfs configfs efivarfs pstore bpf fusectl"
    b" binfmt_misc rpc_pipefs nfsd resctrl".split()
)


def kernel_devices() -> frozenset[int]:
    """Return the devices of /proc, /sys and the like, and of all that is mounted beneath these two: their files
    reveal secrets of other processes, and reading one, or creating a folder there, can have effects.
    """
    found = {os.stat(path).st_dev for path in ("/proc", "/sys") if os.path.isdir(path)}
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            for line in file:
                # `36 35 98:0 /root /where options - type source options`; the optional ones vary in number.
                fields, _, kind = line.partition(b" - ")
                _, _, device, _, where, *_ = fields.split(b" ")
                if where.startswith((b"/proc/", b"/sys/")) or kind.split(b" ", 1)[0] in _TYPES:
                    major, minor = device.split(b":")
                    found.add(os.makedev(int(major), int(minor)))
    except OSError:
        pass  # not Linux, or /proc is not mounted
    # A container hides single files of /proc behind those of ordinary file systems, which stay ordinary.
    return frozenset(found - {os.stat(path).st_dev for path in ("/", "/dev") if os.path.isdir(path)})
