/* A backend as it is given to `backend` and `create --backend`. */
#ifndef BRECCIA_CLI_BACKEND_VALUE_H
#define BRECCIA_CLI_BACKEND_VALUE_H

#include "../cli.h"

/* A bare name as it is, anything else as JSON; `what` names it in messages. */
int cli_backend_argument(struct cli *cli, const char *what, const char *text, const char **out);

#endif
