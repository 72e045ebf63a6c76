"""A clock that is days ahead, for the programs that a test starts.

Why a library of our own: what replaces the clock of a kernel must leave its timers alone. Only the
wall clock moves; waiting until a time of the wall clock is moved back.
"""

import shutil
import subprocess
from pathlib import Path

from .lacking import lacking

DAYS = 217
_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, at);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += MOVED;
    return failed;
}

time_t time(time_t *to) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (to) *to = at.tv_sec;
    return at.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    to->tv_sec = at.tv_sec;
    to->tv_usec = at.tv_nsec / 1000;
    return 0;
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec at = *until;
    at.tv_sec -= MOVED;
    return real(semaphore, &at);
}
"""


def moved_clock(folder: Path) -> dict[str, str]:
    """Return the variables with which a program lives `DAYS` days later.

    folder: where the library is made.
    """
    compiler = shutil.which("cc") or lacking("no C compiler: the clock of a kernel cannot be moved")
    source, library = folder / "moved_clock.c", folder / "moved_clock.so"
    source.write_text(_SOURCE)
    options = ["-shared", "-fPIC", "-O1", f"-DMOVED={DAYS * 86_400}L"]
    subprocess.run([compiler, *options, "-o", library, source, "-ldl"], check=True, timeout=60)
    return {"LD_PRELOAD": str(library)}
