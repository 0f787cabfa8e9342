// The driver library is opened at run time: a binary built with the tag starts on
// machines without one. shim_gen.c defines every function of cuda.h as a call
// through ragd_driver_symbol.
#pragma once

#include <cuda.h>

// ragd_driver_open opens the library and initialises it. On failure *reason says
// why, valid until the next call, and nothing is open.
CUresult ragd_driver_open(const char *path, const char **reason);

// ragd_driver_symbol finds a function in the open library; NULL without one.
void *ragd_driver_symbol(const char *name);

// ragd_driver_missing is what a call returns that has no function behind it.
CUresult ragd_driver_missing(void);
