"""Every error a user can meet. The tree is drawn in `uql.base.errors`."""

from uql.base.errors import (
    AuthError as AuthError,
)
from uql.base.errors import (
    BackendError as BackendError,
)
from uql.base.errors import (
    BindError as BindError,
)
from uql.base.errors import (
    BudgetError as BudgetError,
)
from uql.base.errors import (
    ConfigError as ConfigError,
)
from uql.base.errors import (
    DataError as DataError,
)
from uql.base.errors import (
    GuardError as GuardError,
)
from uql.base.errors import (
    ModelError as ModelError,
)
from uql.base.errors import (
    ModelReplyError as ModelReplyError,
)
from uql.base.errors import (
    PlanError as PlanError,
)
from uql.base.errors import (
    QuestionError as QuestionError,
)
from uql.base.errors import (
    QuotaError as QuotaError,
)
from uql.base.errors import (
    UnknownColumnError as UnknownColumnError,
)
from uql.base.errors import (
    UnknownModelError as UnknownModelError,
)
from uql.base.errors import (
    UnknownTableError as UnknownTableError,
)
from uql.base.errors import (
    UQLError as UQLError,
)
from uql.base.errors import (
    UQLSyntaxError as UQLSyntaxError,
)
