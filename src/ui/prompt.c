/* Readline behind its callback interface. What binds it to a terminal is replaced: getc reads our queue, redisplay
 * draws into a grid, the streams lead nowhere. History is written entry by entry, before the entry runs. */
#include "config.h"

#include "ui/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <readline/history.h>
#include <readline/readline.h>

#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "ui/entry.h"

#define PROMPT "> "
#define PROMPT_MORE ">> "
#define HISTORY_ENTRIES 5000
#define HISTORY_BYTES (4 << 20) /* where the file is cut back to HISTORY_ENTRIES */

static struct {
  struct prompt_config c;
  struct str queue; /* bytes for readline */
  size_t used;
  FILE *nowhere_in, *nowhere_out;
  char *history_path; /* NULL: not kept */
  char *problem;
  bool incomplete, ctrl_d;
  char **words; /* of the completion under way */
  size_t n_words, cap_words;
} p;

/* ---- what readline calls ---- */

static int on_getc(FILE *stream)
{
  (void)stream;
  return p.used < p.queue.n ? (unsigned char)p.queue.s[p.used++] : EOF;
}

static int on_input_available(void)
{
  return p.used < p.queue.n;
}

static void on_redisplay(void)
{
}

static void show_prompt(void)
{
  rl_set_prompt(p.incomplete ? PROMPT_MORE : PROMPT);
}

/* ---- history ---- */

static void history_failed(const char *what)
{
  if (p.problem)
    return;
  p.problem = mem_printf("the history is not kept: %s %s: %s", what, p.history_path, strerror(errno));
}

/* One write to a file opened for appending: whole entries of several sessions interleave, nothing is lost. The line
 * with the time says where an entry of several lines begins. */
static void keep_entry(const char *text)
{
  if (!p.history_path)
    return;
  int fd = open(p.history_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    history_failed("open");
    return;
  }
  struct str entry = {0};
  str_addf(&entry, "#%lld\n%s\n", (long long)time(NULL), text);
  if (write(fd, entry.s, entry.n) != (ssize_t)entry.n)
    history_failed("write to");
  str_done(&entry);
  close(fd);
}

static void remember(const char *text)
{
  bool blank = text[strspn(text, " \t\n")] == '\0';
  HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
  if (blank || (last && strcmp(last->line, text) == 0))
    return;
  add_history(text);
  keep_entry(text);
}

static void read_old_history(void)
{
  struct err e;
  struct stat st;
  history_comment_char = '#';
  history_write_timestamps = 1;
  using_history();
  stifle_history(HISTORY_ENTRIES);
  p.history_path = paths_xdg("state", "history", &e);
  if (!p.history_path) {
    p.problem = mem_printf("the history is not kept: %s", e.msg);
    return;
  }
  if (stat(p.history_path, &st) == 0 && st.st_size > HISTORY_BYTES)
    history_truncate_file(p.history_path, HISTORY_ENTRIES);
  read_history(p.history_path);
}

const char *prompt_history_problem(void)
{
  static bool told;
  const char *text = told ? NULL : p.problem;
  told = told || text;
  return text;
}

/* ---- entries ---- */

static void on_line(char *line)
{
  if (!line) {
    /* also what readline makes of the end of our queue within a command that wants more keys */
    if (p.ctrl_d && !p.incomplete)
      p.c.quit(p.c.ctx);
    return;
  }
  remember(line);
  p.c.enter(p.c.ctx, line);
  free(line);
}

/* ---- completion ---- */

/* The part of a word that readline replaces: `text` ends the line, and the word continues a longer end of it. */
static void on_word(void *ctx, const char *word)
{
  const char *line = rl_line_buffer, *text = ctx;
  size_t end = (size_t)rl_point, n_text = strlen(text), n = strlen(word);
  size_t k = end < n ? end : n;
  while (k > n_text && memcmp(line + end - k, word, k) != 0)
    k--;
  if (k < n_text || strncmp(word + k - n_text, text, n_text) != 0)
    return;
  if (p.n_words == p.cap_words) {
    p.cap_words = p.cap_words ? 2 * p.cap_words : 64;
    p.words = mem_realloc(p.words, p.cap_words * sizeof *p.words);
  }
  p.words[p.n_words++] = strdup(word + k - n_text); /* readline free()s */
}

static char *next_word(const char *text, int state)
{
  static size_t at;
  (void)text;
  if (state == 0)
    at = 0;
  return at < p.n_words ? p.words[at++] : NULL;
}

static char **on_complete(const char *text, int start, int end)
{
  (void)start;
  (void)end;
  p.n_words = 0;
  vm_complete(p.c.vm, rl_line_buffer, (size_t)rl_point, on_word, (void *)text);
  rl_attempted_completion_over = 1; /* no file names */
  rl_completion_append_character = '\0';
  rl_completion_suppress_quote = 1;
  return p.n_words ? rl_completion_matches(text, next_word) : NULL;
}

/* Columns like ls: down, then across. */
static void on_list(char **matches, int n, int longest)
{
  int w = p.c.list_width(p.c.ctx), per_row = w / (longest + 2), rows;
  if (per_row < 1)
    per_row = 1;
  rows = (n + per_row - 1) / per_row;
  struct str text = {0};
  for (int row = 0; row < rows; row++) {
    for (int i = row; i < n; i += rows)
      str_addf(&text, "%-*s", i + rows < n ? longest + 2 : 0, matches[i + 1]);
    str_addc(&text, '\n');
  }
  p.c.list(p.c.ctx, text.s);
  str_done(&text);
}

/* ---- life ---- */

static void open_nowhere(void)
{
  p.nowhere_in = fopen("/dev/null", "re");
  p.nowhere_out = fopen("/dev/null", "we");
  rl_instream = p.nowhere_in;
  rl_outstream = p.nowhere_out;
}

/* Alt-Enter: a new line in the entry. */
static int on_newline(int count, int key)
{
  (void)count;
  (void)key;
  rl_insert_text("\n");
  return 0;
}

/* Everything that would bind it to a terminal, before rl_initialize(). */
static void set_hooks(void)
{
  rl_readline_name = "bitdial"; /* $if bitdial in inputrc */
  rl_terminal_name = "dumb";    /* it draws nothing; the keys of terminals are bound below */
  rl_catch_signals = 0;
  rl_catch_sigwinch = 0;
  rl_change_environment = 0;
  rl_prep_term_function = NULL;
  rl_deprep_term_function = NULL;
  rl_getc_function = on_getc;
  rl_input_available_hook = on_input_available;
  rl_redisplay_function = on_redisplay;
  rl_attempted_completion_function = on_complete;
  rl_completion_display_matches_hook = on_list;
  rl_basic_word_break_characters = " \t\n\"\\'`@$><=;|&{}()[]+-*/%^#~.,:!?";
  rl_completer_word_break_characters = rl_basic_word_break_characters;
  rl_completer_quote_characters = "";
}

/* After inputrc was read: what would break the screen does not hold; keys that the user bound stay bound. */
static void set_variables_and_keys(void)
{
  static const struct {
    const char *name, *value;
  } variables[] = {{"bell-style", "none"},
                   {"enable-bracketed-paste", "off"}, /* input.c collects pastes */
                   {"completion-query-items", "0"},
                   {"page-completions", "off"},
                   {"show-all-if-ambiguous", "on"}};
  static const struct {
    const char *keys;
    rl_command_func_t *fn;
  } keys[] = {{"\033[A", rl_get_previous_history},
              {"\033OA", rl_get_previous_history},
              {"\033[B", rl_get_next_history},
              {"\033OB", rl_get_next_history},
              {"\033[C", rl_forward_char},
              {"\033OC", rl_forward_char},
              {"\033[D", rl_backward_char},
              {"\033OD", rl_backward_char},
              {"\033[H", rl_beg_of_line},
              {"\033OH", rl_beg_of_line},
              {"\033[1~", rl_beg_of_line},
              {"\033[7~", rl_beg_of_line},
              {"\033[F", rl_end_of_line},
              {"\033OF", rl_end_of_line},
              {"\033[4~", rl_end_of_line},
              {"\033[8~", rl_end_of_line},
              {"\033[3~", rl_delete},
              {"\033[1;5C", rl_forward_word},
              {"\033[1;5D", rl_backward_word},
              {"\033\r", on_newline},
              {"\033\n", on_newline}};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    rl_variable_bind(variables[i].name, variables[i].value);
  rl_add_defun("bitdial-newline", on_newline, -1);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    rl_bind_keyseq_if_unbound(keys[i].keys, keys[i].fn);
}

void prompt_begin(const struct prompt_config *c)
{
  memset(&p, 0, sizeof p);
  p.c = *c;
  open_nowhere();
  set_hooks();
  rl_initialize();
  set_variables_and_keys();
  read_old_history();
  rl_callback_handler_install(PROMPT, on_line);
  rl_already_prompted = 1;
}

void prompt_end(void)
{
  rl_callback_handler_remove();
  clear_history();
  fclose(p.nowhere_in);
  fclose(p.nowhere_out);
  mem_free(p.words);
  mem_free(p.history_path);
  mem_free(p.problem);
  str_done(&p.queue);
}

void prompt_key(const char *bytes, size_t n)
{
  if (p.used == p.queue.n) {
    str_clear(&p.queue);
    p.used = 0;
  }
  str_addn(&p.queue, bytes, n);
  p.ctrl_d = n == 1 && *bytes == 4;
  while (p.used < p.queue.n)
    rl_callback_read_char();
}

void prompt_paste(const char *text, size_t n)
{
  struct str clean = {0};
  if (RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_MULTIKEY))
    prompt_clear();
  for (size_t i = 0; i < n; i++) { /* CR, LF and CRLF are line ends; other control characters do nothing */
    char c = text[i] == '\r' ? '\n' : text[i];
    if (c == '\n' && i > 0 && text[i - 1] == '\r' && text[i] == '\n')
      continue;
    if (c == '\n' || c == '\t' || (unsigned char)c >= 0x20)
      str_addc(&clean, c);
  }
  while (clean.n > 0 && clean.s[clean.n - 1] == '\n')
    clean.s[--clean.n] = '\0';
  if (clean.n > 0) {
    rl_begin_undo_group();
    rl_insert_text(clean.s);
    rl_end_undo_group();
  }
  str_done(&clean);
}

bool prompt_clear(void)
{
  bool any = rl_end > 0 || RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_MULTIKEY | RL_STATE_NUMERICARG);
  rl_callback_sigcleanup();
  rl_free_line_state();
  RL_UNSETSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_MULTIKEY | RL_STATE_NUMERICARG | RL_STATE_VIMOTION);
  rl_free_undo_list();
  rl_replace_line("", 1);
  using_history(); /* back to its end */
  rl_clear_message();
  show_prompt();
  return any;
}

bool prompt_takes_esc(void)
{
  return RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH) ||
         (rl_editing_mode == 0 && rl_get_keymap() != vi_movement_keymap);
}

void prompt_set_incomplete(bool incomplete)
{
  if (incomplete == p.incomplete)
    return;
  p.incomplete = incomplete;
  show_prompt();
}

/* ---- drawing ---- */

static struct entry current_entry(void)
{
  return (struct entry){.prompt = rl_display_prompt ? rl_display_prompt : "",
                        .more = PROMPT_MORE,
                        .text = rl_line_buffer ? rl_line_buffer : "",
                        .point = (size_t)rl_point};
}

int prompt_rows(int w)
{
  struct entry e = current_entry();
  return entry_rows(&e, w);
}

void prompt_draw(struct grid *g, struct rect r, int *cursor_x, int *cursor_y)
{
  struct entry e = current_entry();
  entry_draw(&e, g, r, cursor_x, cursor_y);
}
