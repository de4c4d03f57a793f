// Makes each flush of PostgreSQL's write-ahead log take 1.5 ms, as on a usual cloud volume. PostgreSQL loads this
// library by LD_PRELOAD.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

#define FLUSH_NANOSECONDS 1500000

int fdatasync(int file) {
  static int (*flush)(int);
  struct timespec end;
  if (!flush) flush = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += FLUSH_NANOSECONDS;
  if (end.tv_nsec >= 1000000000) {
    end.tv_nsec -= 1000000000;
    end.tv_sec += 1;
  }
  int result = flush(file);
  int error = errno;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) continue;
  errno = error;
  return result;
}
