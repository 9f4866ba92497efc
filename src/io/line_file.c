/* A file that grows line by line. Lines wait in a buffer of its own until there are many or they are a quarter of a
 * second old, so that a fast run pays little and `tail -f` sees a slow one at once.
 *
 * A write that fails (full disk, closed pipe) leaves the file at the end of a whole line where it can be cut, and keeps
 * what was not written: when there is room again, the next write goes on where the file ends. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/jsonl.h"

#define FLUSH_BYTES 65536
#define FLUSH_S 0.25

struct line_file {
  char *path;
  int fd;
  bool regular;   /* can be cut back to whole lines */
  struct str buffer;
  double flushed; /* when last, on the monotonic clock */
};

/* Empties a regular file for us alone: a file that another one writes, here or in another process, is no file to begin
 * anew. Where the file system has no locks there is no such care. */
static int take_over(int fd)
{
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return -1;
  return ftruncate(fd, 0);
}

struct line_file *line_file_create(const char *path, struct err *e)
{
  bool to_stdout = strcmp(path, "-") == 0;
  int fd = to_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  struct stat st;
  bool regular = fd >= 0 && !to_stdout && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (fd < 0 || (regular && take_over(fd) != 0)) {
    err_set(e, "cannot write %s: %s", to_stdout ? "standard output" : path,
            errno == EWOULDBLOCK ? "another run writes it" : strerror(errno));
    if (fd >= 0)
      close(fd);
    return NULL;
  }
  struct line_file *f = mem_alloc(sizeof *f);
  *f = (struct line_file){
      .path = mem_strdup(to_stdout ? "standard output" : path),
      .fd = fd,
      .regular = regular,
      .flushed = clock_mono_s(),
  };
  return f;
}

/* Takes the n bytes that are in the file out of the buffer. Where they end inside a line, the piece of it is cut off
 * the file again and stays in the buffer whole; where the file cannot be cut, the rest of it stays, for what comes
 * after. */
static void drop_written(struct line_file *f, size_t n)
{
  size_t whole = n;
  while (whole > 0 && f->buffer.s[whole - 1] != '\n')
    whole--;
  if (whole < n && f->regular) {
    off_t end = lseek(f->fd, 0, SEEK_CUR);
    off_t keep = end - (off_t)(n - whole);
    if (end >= 0 && ftruncate(f->fd, keep) == 0 && lseek(f->fd, keep, SEEK_SET) == keep)
      n = whole;
  }
  memmove(f->buffer.s, f->buffer.s + n, f->buffer.n - n + 1); /* the NUL too */
  f->buffer.n -= n;
}

static void wait_writable(int fd)
{
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  (void)poll(&p, 1, 1000);
}

int line_file_flush(struct line_file *f, struct err *e)
{
  size_t done = 0;
  f->flushed = clock_mono_s();
  while (done < f->buffer.n) {
    ssize_t n = write(f->fd, f->buffer.s + done, f->buffer.n - done);
    if (n >= 0) {
      done += (size_t)n;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_writable(f->fd); /* standard output that someone else made non-blocking */
    } else if (errno != EINTR) {
      int why = errno;
      drop_written(f, done);
      return err_set(e, "cannot write %s: %s", f->path, strerror(why));
    }
  }
  str_clear(&f->buffer);
  return 0;
}

int line_file_write(struct line_file *f, const char *line, struct err *e)
{
  size_t n = strlen(line);
  assert(!memchr(line, '\n', n));
  size_t before = f->buffer.n;
  str_addn(&f->buffer, line, n);
  str_addc(&f->buffer, '\n');
  if (f->buffer.n < FLUSH_BYTES && clock_mono_s() - f->flushed < FLUSH_S)
    return 0;
  size_t queued = f->buffer.n - before; /* this line, always last */
  if (line_file_flush(f, e) == 0)
    return 0;
  /* Not taken: the caller undoes the step that this line tells of, and may well write another one later. If a part of
   * it is out already (a pipe), the rest has to follow it all the same. */
  if (f->buffer.n >= queued) {
    f->buffer.n -= queued;
    f->buffer.s[f->buffer.n] = '\0';
  }
  return -1;
}

int line_file_close(struct line_file *f, struct err *e)
{
  if (!f)
    return 0;
  int status = line_file_flush(f, e);
  if (close(f->fd) != 0 && status == 0)
    status = err_set(e, "cannot write %s: %s", f->path, strerror(errno));
  mem_free(f->path);
  str_done(&f->buffer);
  mem_free(f);
  return status;
}

const char *line_file_path(const struct line_file *f)
{
  return f->path;
}
