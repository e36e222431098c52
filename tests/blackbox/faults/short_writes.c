/* Loaded before libc: every SHORT_EVERY-th write to a regular file writes half of what it was asked to, as a kernel may.
   A byte is added to the file SHORT_LOG for each. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_uint calls;

static size_t share(int fd, size_t count)
{
    const char *every = getenv("SHORT_EVERY"), *log = getenv("SHORT_LOG");
    struct stat found;
    if (!every || !log || count < 2 || fstat(fd, &found) || !S_ISREG(found.st_mode))
        return count;
    if (atomic_fetch_add(&calls, 1) % atoi(every))
        return count;
    int told = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ssize_t (*plain)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (told >= 0) {
        plain(told, "s", 1);
        close(told);
    }
    return count / 2;
}

ssize_t write(int fd, const void *data, size_t count)
{
    ssize_t (*plain)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    return plain(fd, data, share(fd, count));
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t place)
{
    ssize_t (*plain)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
    return plain(fd, data, share(fd, count), place);
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t place)
{
    return pwrite64(fd, data, count, place);
}
