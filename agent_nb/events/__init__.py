"""What happened in a run: the event types, their JSON, the log that holds them, and the rows and
frames built from them.

The types are defined in `types` and imported from here: `from agent_nb.events import Call`.

Order: chunks, column_type, field_order, interruption, position, types, usage
< answer_frame, completion, event_json, mapped, text, tool_events
< event_columns, rows
< columns
< event_frame
< frame
< log
"""

from .types import (
    ENVELOPE as ENVELOPE,
)
from .types import (
    PRINTED as PRINTED,
)
from .types import (
    RESEND as RESEND,
)
from .types import (
    TYPES as TYPES,
)
from .types import (
    AnyEvent as AnyEvent,
)
from .types import (
    Approval as Approval,
)
from .types import (
    Call as Call,
)
from .types import (
    Counts as Counts,
)
from .types import (
    Delta as Delta,
)
from .types import (
    End as End,
)
from .types import (
    EndStatus as EndStatus,
)
from .types import (
    Error as Error,
)
from .types import (
    Event as Event,
)
from .types import (
    Execute as Execute,
)
from .types import (
    Extension as Extension,
)
from .types import (
    Interrupt as Interrupt,
)
from .types import (
    Metric as Metric,
)
from .types import (
    Node as Node,
)
from .types import (
    Origin as Origin,
)
from .types import (
    Progress as Progress,
)
from .types import (
    Respond as Respond,
)
from .types import (
    Result as Result,
)
from .types import (
    ResultStatus as ResultStatus,
)
from .types import (
    RunStart as RunStart,
)
from .types import (
    Started as Started,
)
from .types import (
    State as State,
)
from .types import (
    Think as Think,
)
from .types import (
    Unknown as Unknown,
)
from .types import (
    User as User,
)
