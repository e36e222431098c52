"""How long a test waits for what must come.

It measures nothing and only a hang gets there, however busy the machine is. What a contract bounds has a name of its
own beside the test.
"""

from __future__ import annotations

PATIENCE_S = 60.0
