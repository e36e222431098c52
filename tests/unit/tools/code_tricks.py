"""The same trick in several languages: read a file, write one, open a connection, signal a process, leave a daemon."""

from __future__ import annotations

import json

READ = {
    "python": "try:\n    print(open(%s).read())\nexcept OSError as error:\n    print('no:', error)",
    "javascript": "try { console.log(require('fs').readFileSync(%s, 'utf8')) }\n"
    "catch (e) { console.log('no:', e.code) }",
    "typescript": "import fs from 'fs'; try { console.log(fs.readFileSync(%s, 'utf8')) }\n"
    "catch (e) { console.log('no:') }",
    "shell": "cat -- %s || echo no:",
    "perl": "if (open(my $f, '<', %s)) { print <$f> } else { print \"no: $!\\n\" }",
    "ruby": 'begin; puts File.read(%s); rescue SystemCallError => e; puts "no: #{e}"; end',
    "php": "$t = @file_get_contents(%s); echo $t === false ? 'no:' : $t, \"\\n\";",
    "go": 'package main\nimport ("fmt"; "os")\nfunc main() { b, e := os.ReadFile(%s)\n'
    'if e != nil { fmt.Println("no:", e) }; fmt.Println(string(b)) }',
    "rust": "fn main() { match std::fs::read_to_string(%s) {\n"
    'Ok(t) => println!("{t}"), Err(e) => println!("no: {e}") } }',
    "r": "cat(tryCatch(readLines(%s), error = function(e) 'no:', warning = function(w) 'no:'), '\\n')",
    "elixir": 'case File.read(%s) do {:ok, t} -> IO.puts(t); {:error, e} -> IO.puts("no: #{e}") end',
}

WRITE = {
    "python": "try:\n    open(%s, 'w').write('planted')\nexcept OSError as error:\n    print('no:', error)",
    "javascript": "try { require('fs').writeFileSync(%s, 'planted') } catch (e) { console.log('no:', e.code) }",
    "typescript": "import fs from 'fs'; try { fs.writeFileSync(%s, 'planted') } catch (e) { console.log('no:') }",
    "shell": "(echo planted > %s) || echo no:",
    "perl": "if (open(my $f, '>', %s)) { print $f 'planted'; close($f) } else { print \"no: $!\\n\" }",
    "ruby": "begin; File.write(%s, 'planted'); rescue SystemCallError => e; puts \"no: #{e}\"; end",
    "php": "if (@file_put_contents(%s, 'planted') === false) echo \"no:\\n\";",
    "go": 'package main\nimport ("fmt"; "os")\nfunc main() {\n'
    'if e := os.WriteFile(%s, []byte("planted"), 0o644); e != nil { fmt.Println("no:", e) } }',
    "rust": 'fn main() { if let Err(e) = std::fs::write(%s, "planted") { println!("no: {e}") } }',
    "r": "tryCatch(writeLines('planted', %s), error = function(e) cat('no:\\n'), warning = function(w) cat('no:\\n'))",
    "elixir": 'with {:error, e} <- File.write(%s, "planted"), do: IO.puts("no: #{e}")',
}

CONNECT = {
    "python": "import socket\ntry:\n    socket.create_connection(('127.0.0.1', PORT), 5)\n    print('connected')\n"
    "except OSError as error:\n    print('no:', error)",
    "javascript": "const s = require('net').connect(PORT, '127.0.0.1')\n"
    "s.on('connect', () => { console.log('connected'); s.destroy() })\n"
    "s.on('error', (e) => console.log('no:', e.code))",
    "shell": "(exec 3<>/dev/tcp/127.0.0.1/PORT && echo connected) || echo no:",
    "perl": 'use IO::Socket::INET; print IO::Socket::INET->new(\'127.0.0.1:PORT\') ? "connected\\n" : "no:\\n";',
    "ruby": "require 'socket'\nbegin; TCPSocket.new('127.0.0.1', PORT); puts 'connected'\n"
    'rescue SystemCallError => e; puts "no: #{e}"; end',
    "php": 'echo @fsockopen(\'127.0.0.1\', PORT) ? "connected\\n" : "no:\\n";',
}

SIGNAL = {
    "python": "import os\ntry:\n    os.kill(PID, 0)\n    print('reached')\nexcept OSError as error:\n"
    "    print('no:', error)\nos.kill(os.getppid(), 9)\nprint('after')",
    "javascript": "try { process.kill(PID, 0); console.log('reached') } catch (e) { console.log('no:', e.code) }\n"
    "process.kill(process.ppid, 'SIGKILL')",
    "shell": "kill -0 PID && echo reached || echo no:\nkill -KILL $PPID",
    "perl": 'print kill(0, PID) ? "reached\\n" : "no: $!\\n"; $| = 1; kill(\'KILL\', getppid());',
}

DAEMON = {
    "python": "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.closerange(0, 100)\n"
    "        os.environ.clear()\n        os.execv('/bin/sleep', ['worker', 'TOKEN'])\n    os._exit(0)\n"
    "os.wait()\nprint('left')",
    "javascript": "const { spawn } = require('child_process')\n"
    "spawn('sleep', ['TOKEN'], { detached: true, stdio: 'ignore', env: {} }).unref()\nconsole.log('left')",
    "shell": "env -i setsid -f sleep TOKEN >/dev/null 2>&1\necho left",
    "perl": "use POSIX; unless (fork) { POSIX::setsid(); unless (fork) { close(STDOUT); close(STDERR); %ENV = ();\n"
    "exec('/bin/sleep', 'TOKEN') } exit } wait; print \"left\\n\";",
}


def quoted(path: str, language: str) -> str:
    """The path as a text of the language; those of the tests have no quotes in them."""
    return f"'{path}'" if language in ("shell", "perl", "php") else json.dumps(path)
