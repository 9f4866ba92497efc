/* bitdial formats: the list of number formats, and one format's parameters, values and number line. */
#ifndef CMD_FORMATS_H
#define CMD_FORMATS_H

#include "cmd.h"

extern const struct cmd_option formats_options[];
extern const char formats_details[];
int cmd_formats(int argc, char **argv);

#endif
