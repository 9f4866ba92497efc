/* bitdial round: numbers in, rounded numbers out, one a line. */
#ifndef CMD_ROUND_H
#define CMD_ROUND_H

#include "cmd.h"

extern const struct cmd_option round_options[];
extern const char round_details[];
int cmd_round(int argc, char **argv);

#endif
