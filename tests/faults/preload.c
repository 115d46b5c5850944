/* Fails, kills or interrupts a process at its k-th operation on files below one folder.

Loaded before the C library (LD_PRELOAD), it sees what Python, SQLite and pyarrow do alike. The state is a block of
memory that the tool shares with the processes it starts: all processes of one run count in it together. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum how { COUNT, FAIL, FULL, KILL, INTERRUPT };
enum kind { NEEDS_SPACE = 1, CHANGES = 2, READS = 4 };
enum { OPERATIONS = 4096, LONGEST = 112, PATH = 4096 };

/* The layout stands in injection.py as well. */
struct state {
    _Atomic int group; /* the process group that counts; 0: nobody */
    int at;            /* the operation at which it happens, from 1 */
    int how;
    _Atomic int count;
    char root[PATH];
    struct {
        int kind;
        char what[LONGEST];
    } operations[OPERATIONS];
};

static struct state *shared;

void faults_share(void *memory) { shared = memory; }

#define NEXT(name) \
    static typeof(name) *next; \
    if (next == NULL) next = (typeof(name) *)dlsym(RTLD_NEXT, #name)

static int counts(void) {
    return shared != NULL && shared->group != 0 && getpgrp() == shared->group;
}

static int is_below(const char *path) {
    size_t length = strlen(shared->root);
    if (strncmp(path, shared->root, length) != 0 || strstr(path + length, "/../") != NULL) return 0;
    return path[length] == '/' || path[length] == '\0';
}

static int of_descriptor(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

static int of_name(int folder, const char *name, char *path) {
    char around[PATH];
    if (name == NULL) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH, "%s", name);
        return 1;
    }
    if (folder == AT_FDCWD ? getcwd(around, PATH) == NULL : !of_descriptor(folder, around)) return 0;
    return snprintf(path, PATH, "%.2000s/%.2000s", around, name) > 0;
}

/* What is to happen to this operation: COUNT for nothing. FAIL and FULL are for the caller, as is KILL of a write. */
static int happens(const char *operation, const char *path, int kind, int is_write) {
    if (!is_below(path)) return COUNT;
    int number = atomic_fetch_add(&shared->count, 1) + 1;
    if (number <= OPERATIONS) {
        shared->operations[number - 1].kind = kind;
        snprintf(shared->operations[number - 1].what, LONGEST, "%s%s", operation, path + strlen(shared->root));
    }
    if (shared->how == FULL) return number >= shared->at && (kind & NEEDS_SPACE) ? FULL : COUNT;
    if (number != shared->at) return COUNT;
    if (shared->how == INTERRUPT && getpid() == shared->group) kill(shared->group, SIGINT);
    if (shared->how == KILL && !is_write) kill(getpid(), SIGKILL);
    return shared->how == FAIL || shared->how == KILL ? shared->how : COUNT;
}

static int stops(int happening) {
    if (happening == COUNT) return 0;
    errno = happening == FULL ? ENOSPC : EIO;
    return 1;
}

static int at_descriptor(const char *operation, int descriptor, int kind, int is_write) {
    char path[PATH];
    int before = errno;
    int happening = counts() && of_descriptor(descriptor, path) ? happens(operation, path, kind, is_write) : COUNT;
    errno = before;
    return happening;
}

static int at_name(const char *operation, int folder, const char *name, int kind) {
    char path[PATH];
    int before = errno;
    int happening = counts() && of_name(folder, name, path) ? happens(operation, path, kind, 0) : COUNT;
    errno = before;
    return happening;
}

/* A file that is there needs no space; one that is opened for reading changes nothing. */
static int kind_of_open(int folder, const char *name, int flags) {
    struct stat found;
    int before = errno, is_there = fstatat(folder, name, &found, 0) == 0;
    errno = before;
    if ((flags & O_CREAT) && !is_there) return NEEDS_SPACE | CHANGES;
    return flags & O_TRUNC ? CHANGES : 0;
}

/* Bytes written over others need no space (but on file systems that copy on write). */
static int kind_of_write(int descriptor, off_t start, size_t size) {
    struct stat found;
    int before = errno, flags = fcntl(descriptor, F_GETFL);
    if (start < 0) start = lseek(descriptor, 0, SEEK_CUR);
    int needs = fstat(descriptor, &found) != 0 || (flags & O_APPEND) || start + (off_t)size > found.st_size;
    errno = before;
    return CHANGES | (needs ? NEEDS_SPACE : 0);
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (counts() && stops(at_name("open ", AT_FDCWD, path, kind_of_open(AT_FDCWD, path, flags)))) return -1; \
        return next(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        NEXT(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (counts() && stops(at_name("open ", folder, path, kind_of_open(folder, path, flags)))) return -1; \
        return next(folder, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

/* Half of the bytes arrive: then the disk is full, or the process dead. */
#define WRITE(operation, descriptor, start, size, all, half) \
    if (counts()) { \
        int happening = at_descriptor(operation, descriptor, kind_of_write(descriptor, start, size), 1); \
        if (happening == KILL || (happening == FULL && shared->count == shared->at)) { \
            ssize_t written = (size) > 1 ? (half) : 0; \
            if (happening == KILL) kill(getpid(), SIGKILL); \
            if (written > 0) return written; \
        } \
        if (stops(happening)) return -1; \
    } \
    return all

ssize_t write(int descriptor, const void *data, size_t size) {
    NEXT(write);
    WRITE("write ", descriptor, -1, size, next(descriptor, data, size), next(descriptor, data, size / 2));
}
ssize_t pwrite(int descriptor, const void *data, size_t size, off_t start) {
    NEXT(pwrite);
    WRITE("pwrite ", descriptor, start, size, next(descriptor, data, size, start),
          next(descriptor, data, size / 2, start));
}
ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t start) {
    NEXT(pwrite64);
    WRITE("pwrite ", descriptor, start, size, next(descriptor, data, size, start),
          next(descriptor, data, size / 2, start));
}
ssize_t writev(int descriptor, const struct iovec *data, int count) {
    NEXT(writev);
    WRITE("writev ", descriptor, -1, 2, next(descriptor, data, count), next(descriptor, data, count / 2));
}

#define READ(operation, descriptor, call) \
    if (counts() && stops(at_descriptor(operation, descriptor, READS, 0))) return -1; \
    return call

ssize_t read(int descriptor, void *data, size_t size) {
    NEXT(read);
    READ("read ", descriptor, next(descriptor, data, size));
}
ssize_t pread(int descriptor, void *data, size_t size, off_t start) {
    NEXT(pread);
    READ("pread ", descriptor, next(descriptor, data, size, start));
}
ssize_t pread64(int descriptor, void *data, size_t size, off64_t start) {
    NEXT(pread64);
    READ("pread ", descriptor, next(descriptor, data, size, start));
}

/* The disk itself is left in peace: a kill loses nothing that was written. */
#define SYNC(name) \
    int name(int descriptor) { \
        NEXT(name); \
        if (counts()) return stops(at_descriptor(#name " ", descriptor, 0, 0)) ? -1 : 0; \
        return next(descriptor); \
    }
SYNC(fsync)
SYNC(fdatasync)

#define DESCRIPTOR(name, type) \
    int name(int descriptor, type value) { \
        NEXT(name); \
        if (counts() && stops(at_descriptor(#name " ", descriptor, CHANGES, 0))) return -1; \
        return next(descriptor, value); \
    }
DESCRIPTOR(ftruncate, off_t)
DESCRIPTOR(ftruncate64, off64_t)
DESCRIPTOR(fchmod, mode_t)

#define NAME(name) \
    int name(const char *path) { \
        NEXT(name); \
        if (counts() && stops(at_name(#name " ", AT_FDCWD, path, CHANGES))) return -1; \
        return next(path); \
    }
NAME(unlink)
NAME(remove)
NAME(rmdir)

int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    if (counts() && stops(at_name("unlink ", folder, path, CHANGES))) return -1;
    return next(folder, path, flags);
}
int chmod(const char *path, mode_t mode) {
    NEXT(chmod);
    if (counts() && stops(at_name("chmod ", AT_FDCWD, path, CHANGES))) return -1;
    return next(path, mode);
}
int fchmodat(int folder, const char *path, mode_t mode, int flags) {
    NEXT(fchmodat);
    if (counts() && stops(at_name("chmod ", folder, path, CHANGES))) return -1;
    return next(folder, path, mode, flags);
}
int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    if (counts() && stops(at_name("mkdir ", AT_FDCWD, path, NEEDS_SPACE | CHANGES))) return -1;
    return next(path, mode);
}
int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    if (counts() && stops(at_name("mkdir ", folder, path, NEEDS_SPACE | CHANGES))) return -1;
    return next(folder, path, mode);
}
int rename(const char *from, const char *to) {
    NEXT(rename);
    if (counts() && stops(at_name("rename ", AT_FDCWD, to, CHANGES))) return -1;
    return next(from, to);
}
int renameat(int old, const char *from, int folder, const char *to) {
    NEXT(renameat);
    if (counts() && stops(at_name("rename ", folder, to, CHANGES))) return -1;
    return next(old, from, folder, to);
}
int renameat2(int old, const char *from, int folder, const char *to, unsigned int flags) {
    NEXT(renameat2);
    if (counts() && stops(at_name("rename ", folder, to, CHANGES))) return -1;
    return next(old, from, folder, to, flags);
}
int link(const char *from, const char *to) {
    NEXT(link);
    if (counts() && stops(at_name("link ", AT_FDCWD, to, NEEDS_SPACE | CHANGES))) return -1;
    return next(from, to);
}
int linkat(int old, const char *from, int folder, const char *to, int flags) {
    NEXT(linkat);
    if (counts() && stops(at_name("link ", folder, to, NEEDS_SPACE | CHANGES))) return -1;
    return next(old, from, folder, to, flags);
}
