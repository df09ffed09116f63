/* Records what a process does to the files below a folder, in the order in which it is done.

   It is preloaded: LOCUS_RECORD is the file of the record, LOCUS_UNDER the folder. A line of the
   record is an operation, a path, a number and bytes as hexadecimal digits, parted by tabs. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#undef open64
#undef pwrite64
#undef ftruncate64

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static FILE *record;
static const char *under;

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)

static int real_open(const char *path, int flags, mode_t mode) {
    static int (*real)(const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "open");
    return real(path, flags, mode);
}

static int is_ours(const char *path) {
    if (!under) {
        under = getenv("LOCUS_UNDER");
        int handle = real_open(getenv("LOCUS_RECORD"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        record = fdopen(handle, "a");
    }
    return strncmp(path, under, strlen(under)) == 0;
}

static const char *path_of(int handle, char *room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, room, 4095);
    room[length < 0 ? 0 : length] = 0;
    return is_ours(room) ? room : NULL;
}

static void note(const char *name, const char *path, long long number, const void *bytes, size_t size) {
    fprintf(record, "%s\t%s\t%lld\t", name, path, number);
    for (size_t i = 0; i < size; i++) fprintf(record, "%02x", ((const unsigned char *)bytes)[i]);
    fputc('\n', record);
    fflush(record);
}

static int opened(const char *path, int flags, mode_t mode) {
    pthread_mutex_lock(&order);
    struct stat found;
    int ours = path[0] == '/' && is_ours(path) && (flags & (O_CREAT | O_TRUNC));
    int missing = ours && stat(path, &found) != 0;
    int handle = real_open(path, flags, mode);
    if (ours && handle >= 0) {
        int kept = errno;
        if (missing) note("create", path, 0, NULL, 0);
        else if (flags & O_TRUNC) note("truncate", path, 0, NULL, 0);
        errno = kept;
    }
    pthread_mutex_unlock(&order);
    return handle;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        return opened(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int handle, const void *bytes, size_t size) {
    REAL(write);
    char room[4096];
    if (!path_of(handle, room)) return real(handle, bytes, size);
    pthread_mutex_lock(&order);
    off_t place = lseek(handle, 0, SEEK_CUR);
    ssize_t done = real(handle, bytes, size);
    int kept = errno;
    if (done > 0) note("write", room, place, bytes, done);
    errno = kept;
    pthread_mutex_unlock(&order);
    return done;
}

#define WRITE_AT(name) \
    ssize_t name(int handle, const void *bytes, size_t size, off_t place) { \
        REAL(name); \
        char room[4096]; \
        if (!path_of(handle, room)) return real(handle, bytes, size, place); \
        pthread_mutex_lock(&order); \
        ssize_t done = real(handle, bytes, size, place); \
        int kept = errno; \
        if (done > 0) note("write", room, place, bytes, done); \
        errno = kept; \
        pthread_mutex_unlock(&order); \
        return done; \
    }
WRITE_AT(pwrite)
WRITE_AT(pwrite64)

#define BY_HANDLE(name, label, parameters, number, ...) \
    int name parameters { \
        REAL(name); \
        char room[4096]; \
        if (!path_of(handle, room)) return real(__VA_ARGS__); \
        pthread_mutex_lock(&order); \
        int failed = real(__VA_ARGS__); \
        int kept = errno; \
        if (!failed) note(label, room, number, NULL, 0); \
        errno = kept; \
        pthread_mutex_unlock(&order); \
        return failed; \
    }
BY_HANDLE(fsync, "sync", (int handle), 0, handle)
BY_HANDLE(fdatasync, "sync", (int handle), 0, handle)
BY_HANDLE(ftruncate, "truncate", (int handle, off_t size), size, handle, size)
BY_HANDLE(ftruncate64, "truncate", (int handle, off_t size), size, handle, size)

#define BY_PATH(name, parameters, ...) \
    int name parameters { \
        REAL(name); \
        if (path[0] != '/' || !is_ours(path)) return real(__VA_ARGS__); \
        pthread_mutex_lock(&order); \
        int failed = real(__VA_ARGS__); \
        int kept = errno; \
        /* A path that cannot exist is a remark of the program. */ \
        if (!failed || strstr(path, "/ack ")) note(#name, path, 0, NULL, 0); \
        errno = kept; \
        pthread_mutex_unlock(&order); \
        return failed; \
    }
BY_PATH(unlink, (const char *path), path)
BY_PATH(rmdir, (const char *path), path)
BY_PATH(mkdir, (const char *path, mode_t mode), path, mode)

int rename(const char *path, const char *other) {
    REAL(rename);
    if (path[0] != '/' || !is_ours(path)) return real(path, other);
    pthread_mutex_lock(&order);
    int failed = real(path, other);
    int kept = errno;
    if (!failed) note("rename", path, 0, other, strlen(other));
    errno = kept;
    pthread_mutex_unlock(&order);
    return failed;
}
