/* Errors, hashes, paths and clocks: what touches the system around the program. */
#include "config.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/paths.h"
#include "tests/tap/tap.h"

static void test_err(void)
{
  struct err e;
  is_int(err_set(&e, "bits = %d", 3), -1, "err_set returns -1");
  is_str(e.msg, "bits = 3", "message");
  err_set(&e, "again: %s", e.msg);
  is_str(e.msg, "again: bits = 3", "a message may be built from itself");
  is_int(err_prefix(&e, "line %d", 7), -1, "err_prefix returns -1");
  is_str(e.msg, "line 7: again: bits = 3", "prefix in front");
  is_int(err_set(NULL, "x"), -1, "nowhere to write");

  char longer[3000];
  memset(longer, 'm', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  err_set(&e, "%s", longer);
  is_int(strlen(e.msg), sizeof e.msg - 1, "a long message is cut");
  err_prefix(&e, "p");
  ok(strlen(e.msg) == sizeof e.msg - 1 && strncmp(e.msg, "p: mm", 5) == 0, "and a prefix still fits in front");
  err_prefix(&e, "%s", longer);
  ok(strlen(e.msg) == sizeof e.msg - 1 && e.msg[sizeof e.msg - 2] == 'm', "a long prefix is cut too");
}

static int hook_fd;
static void hook(void)
{
  if (write(hook_fd, "restored;", 9) != 9)
    _exit(9);
  die("again"); /* a hook that dies must not loop */
}

static void test_die(void)
{
  int fd[2];
  if (pipe(fd) != 0)
    tap_bail("no pipe");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    dup2(fd[1], STDERR_FILENO);
    hook_fd = fd[1];
    die_set_hook(hook);
    die("broken %d", 5);
  }
  close(fd[1]);
  char text[200] = "";
  size_t n = 0;
  for (ssize_t k; n < sizeof text - 1 && (k = read(fd[0], text + n, sizeof text - 1 - n)) > 0;)
    n += (size_t)k;
  close(fd[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "die() aborts");
  is_str(text, "restored;bitdial: again\n", "after the hook, which runs once");
}

static void test_hash(void)
{
  char hex[33];
  /* XXH3-128 of nothing and of "ClickHouse", as published with xxHash's and ClickHouse's own tests. */
  hash_buffer("", 0, hex);
  is_str(hex, "99aa06d3014798d86001c324468d497f", "hash of nothing");
  hash_buffer("ClickHouse", 10, hex);
  is_str(hex, "14c27b7bef95d36fecf5520ca2daf030", "hash of a known text");

  char data[5000], whole[33];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (char)(i * 31 + i / 256);
  hash_buffer(data, sizeof data, whole);
  struct hash *h = hash_create();
  for (size_t at = 0, n = 1; at < sizeof data; at += n, n = n * 3 % 700 + 1)
    hash_add(h, data + at, at + n <= sizeof data ? n : sizeof data - at);
  hash_add(h, NULL, 0);
  hash_finish(h, hex);
  is_str(hex, whole, "in pieces as in one");
  data[4000] ^= 1;
  hash_buffer(data, sizeof data, hex);
  ok(strcmp(hex, whole) != 0, "one bit changes it");
}

static void test_paths(void)
{
  char root[] = "/tmp/bitdial-paths-XXXXXX";
  if (!mkdtemp(root))
    tap_bail("no temporary directory");
  struct err e = {""};
  char *state = mem_printf("%s/deep/state", root);
  setenv("XDG_STATE_HOME", state, 1);
  char *p = paths_xdg("state", "history", &e);
  char *want = mem_printf("%s/bitdial/history", state);
  is_str(p, want, "a file of the state directory");
  struct stat st;
  char *dir = mem_printf("%s/bitdial", state);
  ok(stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && stat(want, &st) != 0, "its directory was made, it was not");
  mem_free(p);

  setenv("XDG_CONFIG_HOME", "relative/path", 1);
  setenv("HOME", root, 1);
  p = paths_xdg("config", NULL, &e);
  char *config = mem_printf("%s/.config/bitdial", root);
  is_str(p, config, "a relative XDG path is ignored, as its specification says");
  mem_free(p);

  FILE *f = fopen(want, "w");
  if (f)
    fclose(f);
  char *below = mem_printf("%s/below", want);
  is_int(paths_mkdirs(below, &e), -1, "a directory below a file");
  ok(strstr(e.msg, want) && strstr(e.msg, "Not a directory"), "says where and why: %s", e.msg);
  is_int(paths_mkdirs(dir, &e), 0, "a directory that is there");
  char *slashes = mem_printf("%s//a/b/", root);
  is_int(paths_mkdirs(slashes, &e), 0, "doubled and trailing slashes");

  setenv("BITDIAL_DATA", dir, 1);
  p = paths_shipped("history");
  is_str(p, want, "a shipped file is found below BITDIAL_DATA");
  mem_free(p);
  p = paths_shipped("no/such/file");
  ok(!p, "and one that is not there is not");
  mem_free(p);

  unlink(want);
  static const char *const made[] = {"deep/state/bitdial", "deep/state", "deep", ".config/bitdial", ".config", "a/b", "a"};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    char *d = mem_printf("%s/%s", root, made[i]);
    rmdir(d);
    mem_free(d);
  }
  is_int(rmdir(root), 0, "nothing else was left behind");
  mem_free(state), mem_free(want), mem_free(dir), mem_free(config), mem_free(below), mem_free(slashes);
}

static void test_clock(void)
{
  double t = clock_mono_s();
  clock_sleep_s(0.02);
  double d = clock_mono_s() - t;
  ok(d >= 0.02 && d < 10, "sleeping 20 ms took %.1f ms", 1e3 * d);
  clock_sleep_s(-1);
  char utc[32];
  clock_utc(utc, sizeof utc);
  int y, mo, da, h, mi, s, n = 0;
  ok(sscanf(utc, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &y, &mo, &da, &h, &mi, &s, &n) == 6 && n == 20 && y >= 2024,
     "UTC: %s", utc);
  clock_utc(utc, 5);
  is_str(utc, "", "no room, no time");
}

int main(void)
{
  test_err();
  test_die();
  test_hash();
  test_paths();
  test_clock();
  return tap_done();
}
