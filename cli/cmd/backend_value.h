/* A backend as a user gives one to `backend` and `create --backend`. */
#ifndef BRECCIA_CLI_BACKEND_VALUE_H
#define BRECCIA_CLI_BACKEND_VALUE_H

#include "../cli.h"

/* Sets *out to a bare name as it is, or to any other text as JSON, which is checked. Messages call the text `what`. */
int cli_backend_argument(struct cli *cli, const char *what, const char *text, const char **out);

#endif
