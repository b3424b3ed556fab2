/* A CUDA driver without a GPU. It writes down who initialises it ("cuInit PID FORKED", where FORKED is 1 in a process that was
   forked after the library was loaded), and answers as FAKE_CUDA_INIT, FAKE_CUDA_COUNT and FAKE_CUDA_VERSION say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int forked = 0;
static void in_child(void) { forked = 1; }
__attribute__((constructor)) static void loaded(void) { pthread_atfork(0, 0, in_child); }
static void note(const char *call) {
    const char *path = getenv("FAKE_CUDA_LOG");
    if (!path) return;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    char line[128];
    int n = snprintf(line, sizeof line, "%s %d %d\n", call, (int)getpid(), forked);
    if (write(fd, line, n)) {}
    close(fd);
}
static int number(const char *name, int otherwise) { const char *v = getenv(name); return v ? atoi(v) : otherwise; }
int cuInit(unsigned flags) { note("cuInit"); return number("FAKE_CUDA_INIT", 0); }
int cuDriverGetVersion(int *v) { *v = number("FAKE_CUDA_VERSION", 13000); return 0; }
int cuDeviceGetCount(int *c) { note("cuDeviceGetCount"); *c = number("FAKE_CUDA_COUNT", 0); return 0; }
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status) {
    *found = dlsym(RTLD_DEFAULT, name);
    if (status) *status = *found ? 0 : 1;
    return *found ? 0 : 500;
}
