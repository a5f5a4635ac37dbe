/* A disk whose flush takes FLUSH_US longer: preloaded into both sides of one comparison (benchmarks/slow_disk.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static int flush(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *text = getenv("FLUSH_US");
    long us = text ? atol(text) : 0;
    struct timespec pause = {us / 1000000, (us % 1000000) * 1000};
    int result = real(fd);
    nanosleep(&pause, 0);
    return result;
}

int fsync(int fd) { return flush("fsync", fd); }
int fdatasync(int fd) { return flush("fdatasync", fd); }
