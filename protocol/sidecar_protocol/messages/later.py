"""The types that neither a start nor a first answer needs; `messages` has them when the first is asked for."""

from .branches import *  # noqa: F403
from .context import *  # noqa: F403
from .data import *  # noqa: F403
from .details import *  # noqa: F403
from .engines import *  # noqa: F403
from .event_types import *  # noqa: F403
from .files import *  # noqa: F403
from .git import *  # noqa: F403
from .hooks import *  # noqa: F403
from .index import *  # noqa: F403
from .patches import *  # noqa: F403
from .permissions import *  # noqa: F403
from .providers import *  # noqa: F403
from .snapshots import *  # noqa: F403
from .system import *  # noqa: F403
from .tools import *  # noqa: F403
