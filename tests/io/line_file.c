/* Lines arrive whole and in order; failures are reported where they happen and can be got over. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/jsonl.h"
#include "tests/tap/tap.h"

static char dir[] = "/tmp/bitdial-lines-XXXXXX";

static char *slurp(const char *path, size_t *n)
{
  FILE *f = fopen(path, "r");
  if (!f)
    tap_bail("cannot read %s", path);
  struct str s = {0};
  char piece[4096];
  str_add(&s, "");
  for (size_t k; (k = fread(piece, 1, sizeof piece, f)) > 0;)
    str_addn(&s, piece, k);
  fclose(f);
  *n = s.n;
  return s.s;
}

static struct line_file *create(const char *path)
{
  struct err e;
  struct line_file *f = line_file_create(path, &e);
  if (!f)
    tap_bail("%s", e.msg);
  return f;
}

static void test_plain(void)
{
  struct err e;
  size_t n;
  char *path = mem_printf("%s/plain", dir);
  struct line_file *f = create(path);
  is_str(line_file_path(f), path, "knows its path");
  is_int(line_file_write(f, "one", &e), 0, "first line");
  is_int(line_file_write(f, "", &e), 0, "empty line");
  is_int(line_file_flush(f, &e), 0, "flush");
  char *text = slurp(path, &n);
  is_str(text, "one\n\n", "flushed lines are in the file");
  mem_free(text);
  is_int(line_file_write(f, "three", &e), 0, "third line");
  is_int(line_file_close(f, &e), 0, "close");
  text = slurp(path, &n);
  is_str(text, "one\n\nthree\n", "the last line too");
  mem_free(text);

  f = create(path);
  struct str want = {0};
  int n_failed = 0;
  for (int i = 0; i < 30000; i++) {
    char line[64];
    snprintf(line, sizeof line, "line %d %.*s", i, i % 40, "........................................");
    str_addf(&want, "%s\n", line);
    n_failed += line_file_write(f, line, &e) != 0;
  }
  n_failed += line_file_close(f, &e) != 0;
  is_int(n_failed, 0, "30000 lines, many buffers");
  text = slurp(path, &n);
  ok(n == want.n && memcmp(text, want.s, n) == 0, "the old file is gone, all lines are there in order");
  mem_free(text);
  str_done(&want);
  unlink(path);
  mem_free(path);
}

static void test_refused(void)
{
  struct err e = {""};
  ok(!line_file_create(dir, &e) && strstr(e.msg, dir) && strstr(e.msg, "Is a directory"), "a directory: %s", e.msg);
  char *path = mem_printf("%s/none/x.jsonl", dir);
  ok(!line_file_create(path, &e) && strstr(e.msg, path) && strstr(e.msg, "No such file"), "no directory: %s", e.msg);
  mem_free(path);

  path = mem_printf("%s/readonly", dir);
  FILE *f = fopen(path, "w");
  if (!f || fchmod(fileno(f), 0444) != 0)
    tap_bail("cannot write %s", path);
  fclose(f);
  uid_t uid = geteuid(); /* root writes anything: be nobody for one call */
  if (uid == 0 && seteuid(65534) != 0) {
    tap_skip("root, and cannot become anyone else");
  } else {
    struct line_file *opened = line_file_create(path, &e);
    if (uid == 0 && seteuid(uid) != 0)
      tap_bail("cannot become root again");
    ok(!opened && strstr(e.msg, path) && strstr(e.msg, "Permission denied"), "not writable: %s", e.msg);
  }
  unlink(path);
  mem_free(path);
}

static void test_full_device(void)
{
  struct err e = {""};
  struct line_file *f = create("/dev/full");
  int status = 0;
  long n_taken = 0;
  char line[1001];
  memset(line, 'x', 1000);
  line[1000] = '\0';
  while (n_taken < 1000 && (status = line_file_write(f, line, &e)) == 0)
    n_taken++;
  is_int(status, -1, "a full device is an error at a line (after %ld in the buffer)", n_taken);
  ok(n_taken < 100, "within 100 kB");
  ok(strstr(e.msg, "/dev/full") && strstr(e.msg, "No space left"), "with path and reason: %s", e.msg);
  is_int(line_file_flush(f, &e), -1, "flush fails");
  is_int(line_file_close(f, &e), -1, "close fails, and frees");
}

/* A file-size limit is a disk that fills up and gets room again. */
static void test_full_and_room_again(void)
{
  struct err e = {""};
  char *path = mem_printf("%s/limited", dir);
  struct line_file *f = create(path);
  struct rlimit old, small;
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  struct str want = {0};
  for (int i = 0; i < 300; i++) { /* 7 bytes each: the limit falls inside line 143 */
    char line[16];
    snprintf(line, sizeof line, "%06d", i);
    str_addf(&want, "%s\n", line);
    if (line_file_write(f, line, &e) != 0)
      tap_bail("early failure");
  }
  int status = line_file_flush(f, &e);
  setrlimit(RLIMIT_FSIZE, &old); /* before anything is printed: standard output may be a file too */
  is_int(status, -1, "the limit is met");
  ok(strstr(e.msg, "limited") && strstr(e.msg, strerror(EFBIG)), "%s", e.msg);
  size_t n;
  char *text = slurp(path, &n);
  is_int(n, 994, "cut back to whole lines: 142 of 7 bytes");
  ok(memcmp(text, want.s, n < want.n ? n : want.n) == 0, "which are the first ones");
  mem_free(text);
  is_int(line_file_write(f, "end", &e), 0, "with room again, the next line is taken");
  str_add(&want, "end\n");
  is_int(line_file_close(f, &e), 0, "and all is written");
  text = slurp(path, &n);
  is_str(text, want.s, "nothing lost, nothing twice, nothing torn");
  mem_free(text);
  str_done(&want);
  unlink(path);
  mem_free(path);
}

static void test_refused_line(void)
{
  struct err e = {""};
  char *path = mem_printf("%s/refused", dir);
  struct line_file *f = create(path);
  struct rlimit old, small;
  getrlimit(RLIMIT_FSIZE, &old);
  small = old;
  small.rlim_cur = 50;
  char *large = mem_alloc(70001);
  memset(large, 'y', 70000); /* more than the buffer: written at once */
  int first = line_file_write(f, "kept", &e);
  setrlimit(RLIMIT_FSIZE, &small);
  int second = line_file_write(f, large, &e);
  setrlimit(RLIMIT_FSIZE, &old);
  is_int(first, 0, "a line waits");
  is_int(second, -1, "the next is refused");
  is_int(line_file_write(f, "after", &e), 0, "one more");
  is_int(line_file_close(f, &e), 0, "close");
  size_t n;
  char *text = slurp(path, &n);
  is_str(text, "kept\nafter\n", "the refused line is nowhere in the file");
  mem_free(text), mem_free(large);
  unlink(path);
  mem_free(path);
}

static void test_stdout(void)
{
  struct err e = {""};
  int fd[2], saved = dup(STDOUT_FILENO);
  fflush(stdout);
  if (pipe(fd) != 0 || saved < 0)
    tap_bail("no pipe");
  dup2(fd[1], STDOUT_FILENO);
  close(fd[1]);
  struct line_file *f = line_file_create("-", &e);
  int status = f ? line_file_write(f, "to a pipe", &e) | line_file_flush(f, &e) : -1;
  char text[32] = "";
  ssize_t n = read(fd[0], text, sizeof text - 1);
  close(fd[0]); /* the reader goes away */
  int broken = f ? line_file_write(f, "x", &e) | line_file_flush(f, &e) : 0;
  int closed = f ? line_file_close(f, NULL) : 0;
  int still = fcntl(STDOUT_FILENO, F_GETFD);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  is_int(status, 0, "\"-\" is standard output");
  ok(n == 10 && strcmp(text, "to a pipe\n") == 0, "the line went there");
  is_int(broken, -1, "a closed pipe is an error");
  ok(strstr(e.msg, "standard output") && strstr(e.msg, strerror(EPIPE)), "%s", e.msg);
  is_int(closed, -1, "also at close");
  ok(still >= 0, "closing the file leaves standard output open");
}

/* Two runs told to write one journal: the second is refused, and the first loses nothing. */
static void test_one_writer(void)
{
  struct err e;
  size_t n;
  char *path = mem_printf("%s/shared", dir);
  struct line_file *f = create(path);
  is_int(line_file_write(f, "mine", &e) | line_file_flush(f, &e), 0, "one writes");
  ok(!line_file_create(path, &e) && strstr(e.msg, "another run writes it"), "another may not: %s", e.msg);
  is_int(line_file_write(f, "still", &e) | line_file_close(f, &e), 0, "the first goes on");
  char *text = slurp(path, &n);
  is_str(text, "mine\nstill\n", "with all its lines");
  mem_free(text);
  is_int(line_file_close(create(path), &e), 0, "when it is done another may");
  text = slurp(path, &n);
  is_int(n, 0, "and begins anew");
  mem_free(text);
  unlink(path);
  mem_free(path);
}

int main(void)
{
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  if (!mkdtemp(dir))
    tap_bail("no temporary directory");
  test_plain();
  test_refused();
  test_full_device();
  test_full_and_room_again();
  test_refused_line();
  test_stdout();
  test_one_writer();
  is_int(rmdir(dir), 0, "nothing left behind");
  return tap_done();
}
