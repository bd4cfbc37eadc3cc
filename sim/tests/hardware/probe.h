/* What the parts of the test program share. */
#ifndef ASCEND_SIM_PROBE_H
#define ASCEND_SIM_PROBE_H

#include <stddef.h>

/* The function of that name with the type the header gives it. */
#define DCMI(name) ((__typeof__(&name))find(#name))

/* The exported symbol; ends the program when there is none. */
void *find(const char *name);

/* Commands about vNPUs, settings and resets; 0 when the command is none of them. */
int execute_vdevice(const char *text, char *line, size_t size);

#endif
