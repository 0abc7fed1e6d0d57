/* The Wine server that a command of ours would use. */
#ifndef APPULSE_PROFILE_WINE_SERVER_H
#define APPULSE_PROFILE_WINE_SERVER_H

/* Process id of the server that runs for the prefix in our environment; 0: none, or
 * it cannot be told. */
int wine_server_pid(void);

/* Waits until none runs, at most so long; the process id of one that still does, or 0. */
int wine_server_wait(double seconds);

#endif
