/* What happens to the terminal: signals, crashes, suspension, poor terminals, and where the workbench refuses. */
#include "config.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap/tap.h"

#ifdef HAVE_VTERM
#include "term.h"

#ifdef __has_feature
#define WITH_SANITIZER __has_feature(address_sanitizer)
#elif defined __SANITIZE_ADDRESS__
#define WITH_SANITIZER 1
#else
#define WITH_SANITIZER 0
#endif

static const char *const quick[] = {"--data", "spirals", "--threads", "1", "--speed", "300", NULL};

static void check(struct term *t, bool passed, const char *what)
{
  if (!ok(passed, "%s", what))
    term_show(t);
}

static void start_running(struct term *t, const char *const *args)
{
  term_start(t, 80, 24, args);
  if (!term_wait_text(t, "running"))
    term_show(t);
}

static int count_files(const char *home, const char *suffix)
{
  char dir[512];
  int n = 0;
  snprintf(dir, sizeof dir, "%s/XDG_STATE_HOME/bitdial/runs", home);
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));)
    n += strlen(e->d_name) > strlen(suffix) && strcmp(e->d_name + strlen(e->d_name) - strlen(suffix), suffix) == 0;
  if (d)
    closedir(d);
  return n;
}

static void test_crash(void)
{
  static const struct {
    int number;
    const char *name;
  } crashes[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGQUIT, "SIGQUIT"}};
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
    struct term t;
    start_running(&t, quick);
    ok(!term_is_restored(&t), "%s: (the screen is up before)", crashes[i].name);
    kill(t.pid, crashes[i].number);
    ok(term_wait_exit(&t), "%s ends the program", crashes[i].name);
    ok(term_is_restored(&t), "%s: the terminal is restored", crashes[i].name);
#if !WITH_SANITIZER /* which ends the process its own way */
    ok(WIFSIGNALED(t.status) && WTERMSIG(t.status) == crashes[i].number, "%s: and the signal does its work",
       crashes[i].name);
#endif
    term_free(&t);
  }
}

static void test_end(const char *home, int number, const char *name)
{
  struct term t;
  int before = count_files(home, ".safetensors");
  start_running(&t, quick);
  kill(t.pid, number);
  ok(term_wait_exit(&t), "%s ends the program", name);
  ok(term_is_restored(&t), "%s: the terminal is restored", name);
  ok(WIFSIGNALED(t.status) && WTERMSIG(t.status) == number, "%s: the caller sees the signal", name);
  is_int(count_files(home, ".safetensors"), before + 1, "%s: the state is saved", name);
  check(&t, strstr(term_text(&t), "state saved in") != NULL, "and the summary says where");
  term_free(&t);
}

/* A window that closes: SIGHUP from the kernel, from the shell, and from whoever holds the terminal. */
static void test_hang_up(const char *home)
{
  struct term t;
  int before = count_files(home, ".safetensors");
  start_running(&t, quick);
  for (int i = 0; i < 200; i++) {
    kill(t.pid, SIGHUP);
    nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
  }
  ok(term_wait_exit(&t), "many SIGHUP end the program");
  ok(WIFSIGNALED(t.status) && WTERMSIG(t.status) == SIGHUP, "by the signal");
  is_int(count_files(home, ".safetensors"), before + 1, "but not before the state is saved");
  check(&t, strstr(term_text(&t), "state saved in") != NULL, "and the summary is out");
  term_free(&t);
}

static bool is_stopped(struct term *t, void *ctx)
{
  (void)ctx;
  return waitpid(t->pid, &t->status, WUNTRACED | WNOHANG) == t->pid && WIFSTOPPED(t->status);
}

static void test_suspend(void)
{
  struct term t;
  start_running(&t, quick);
  term_send(&t, "\032");
  ok(term_wait(&t, is_stopped, NULL), "Ctrl-Z stops the process");
  term_pump(&t, 0.1);
  ok(term_is_restored(&t), "the terminal is the shell's meanwhile");
  kill(t.pid, SIGCONT);
  check(&t, term_wait_text(&t, "gradient variance") && t.alternate, "it comes back with the whole screen");
  term_send(&t, "6 * 7\r");
  check(&t, term_wait_text(&t, "42"), "and with the keys");
  term_send(&t, "\004");
  ok(term_wait_exit(&t) && term_is_restored(&t), "and leaves as usual");
  term_free(&t);
}

static void test_colour(void)
{
  struct term t;
  start_running(&t, quick);
  ok(term_wrote_colour(&t), "xterm-256color: there is colour");
  term_free(&t);
  setenv("NO_COLOR", "1", 1);
  start_running(&t, quick);
  term_send(&t, "bits = 4\r");
  term_wait_text(&t, "bits 8");
  ok(!term_wrote_colour(&t), "NO_COLOR: no colour at all");
  term_free(&t);
  setenv("NO_COLOR", "", 1);
  start_running(&t, quick);
  ok(term_wrote_colour(&t), "an empty NO_COLOR does not count");
  term_free(&t);
  unsetenv("NO_COLOR");
  static const char *const without[] = {"--no-color", "--data", "spirals", "--threads", "1", NULL};
  start_running(&t, without);
  ok(!term_wrote_colour(&t), "--no-color: none either");
  term_free(&t);
}

static bool is_ascii(const struct term *t)
{
  for (size_t i = 0; i < t->n_raw; i++)
    if ((unsigned char)t->raw[i] >= 0x80)
      return false;
  return true;
}

static bool has_ascii_curves(struct term *t, void *ctx)
{
  (void)ctx;
  return term_has(t, 4, 3, 40, 11, '*', '*') || term_has(t, 4, 3, 40, 11, '.', 'o');
}

static void test_ascii(void)
{
  struct term t;
  setenv("LC_ALL", "C", 1);
  start_running(&t, quick);
  term_send(&t, "bits = 4\r");
  check(&t, term_wait_text(&t, "bits 8 -> 4"), "LC_ALL=C: a change shows in ASCII");
  check(&t, term_wait(&t, has_ascii_curves, NULL), "LC_ALL=C: there is a curve");
  ok(is_ascii(&t), "LC_ALL=C: every byte written is ASCII");
  term_free(&t);
  setenv("LC_ALL", "C.UTF-8", 1);
  static const char *const without[] = {"--no-unicode", "--data", "spirals", "--threads", "1", NULL};
  start_running(&t, without);
  check(&t, term_wait(&t, has_ascii_curves, NULL), "--no-unicode: there is a curve");
  ok(is_ascii(&t), "--no-unicode: every byte written is ASCII");
  term_free(&t);
}

static void test_poor_terminals(void)
{
  static const char *const terms[] = {"linux", "vt100", "screen", "xterm", "tmux-256color"};
  for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
    struct term t;
    setenv("TERM", terms[i], 1);
    start_running(&t, quick);
    check(&t, term_wait_text(&t, "gradient variance"), terms[i]);
    term_send(&t, "\004");
    ok(term_wait_exit(&t) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 0, "TERM=%s: leaves with 0", terms[i]);
    term_free(&t);
  }
  setenv("TERM", "xterm-256color", 1);
}

static void test_refusals(void)
{
  static const char *const terms[] = {"dumb", "no-such-terminal", ""};
  for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
    struct term t;
    setenv("TERM", terms[i], 1);
    term_start(&t, 80, 24, quick);
    ok(term_wait_exit(&t) && WIFEXITED(t.status) && WEXITSTATUS(t.status) == 1, "TERM=%s: exit status 1", terms[i]);
    check(&t, strstr(term_text(&t), "bitdial run") != NULL, "and the message points to bitdial run");
    ok(term_is_restored(&t), "TERM=%s: nothing was done to the terminal", terms[i]);
    term_free(&t);
  }
  setenv("TERM", "xterm-256color", 1);
  char command[1024], line[1024] = "";
  snprintf(command, sizeof command, "'%s' --data spirals </dev/null 2>&1", getenv("BITDIAL"));
  FILE *f = popen(command, "r");
  size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
  line[n] = '\0';
  int status = f ? pclose(f) : -1;
  ok(WIFEXITED(status) && WEXITSTATUS(status) == 1, "no terminal: exit status 1");
  if (!ok(strstr(line, "terminal") && strstr(line, "bitdial run"), "no terminal: the message says so"))
    tap_note("%s", line);
}

int main(void)
{
  const char *home = term_home();
  test_refusals();
  test_crash();
  test_end(home, SIGTERM, "SIGTERM");
  test_end(home, SIGHUP, "SIGHUP");
  test_end(home, SIGUSR1, "SIGUSR1");
  test_hang_up(home);
  test_suspend();
  test_colour();
  test_ascii();
  test_poor_terminals();
  term_home_done();
  return tap_done();
}

#else
int main(void)
{
  tap_skip("built without libvterm (libvterm-dev)");
  return tap_done();
}
#endif
