/* Directories of the XDG Base Directory Specification, and the files that are installed with the program. */
#include "config.h"

#include "base/paths.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static const struct xdg_dir {
  const char *kind, *variable, *below_home;
} xdg_dir[] = {
    {"state", "XDG_STATE_HOME", ".local/state"},
    {"config", "XDG_CONFIG_HOME", ".config"},
    {"data", "XDG_DATA_HOME", ".local/share"},
    {"cache", "XDG_CACHE_HOME", ".cache"},
};

static char *xdg_base(const struct xdg_dir *d, struct err *e)
{
  const char *given = getenv(d->variable);
  if (given && given[0] == '/') /* the specification: a relative path is invalid and is to be ignored */
    return mem_strdup(given);
  const char *home = getenv("HOME");
  if (!home || home[0] == '\0') {
    const struct passwd *p = getpwuid(getuid());
    home = p ? p->pw_dir : NULL;
  }
  if (!home || home[0] == '\0') {
    err_set(e, "no place for %s files: neither %s nor HOME is set", d->kind, d->variable);
    return NULL;
  }
  return mem_printf("%s/%s", home, d->below_home);
}

char *paths_xdg(const char *kind, const char *leaf, struct err *e)
{
  const struct xdg_dir *d = NULL;
  for (size_t i = 0; i < sizeof xdg_dir / sizeof *xdg_dir; i++)
    if (strcmp(kind, xdg_dir[i].kind) == 0)
      d = &xdg_dir[i];
  if (!d)
    die("paths_xdg: unknown kind \"%s\"", kind);
  char *base = xdg_base(d, e);
  if (!base)
    return NULL;
  char *path = leaf ? mem_printf("%s/bitdial/%s", base, leaf) : mem_printf("%s/bitdial", base);
  mem_free(base);

  char *slash = leaf ? strrchr(path, '/') : NULL; /* a leaf is a file: its directory is made, it is not */
  if (slash)
    *slash = '\0';
  int status = paths_mkdirs(path, e);
  if (slash)
    *slash = '/';
  if (status != 0) {
    mem_free(path);
    return NULL;
  }
  return path;
}

char *paths_shipped(const char *relative)
{
  const char *const root[] = {getenv("BITDIAL_DATA"), PKGDATADIR};
  for (size_t i = 0; i < sizeof root / sizeof *root; i++) {
    if (!root[i] || root[i][0] == '\0')
      continue;
    char *path = mem_printf("%s/%s", root[i], relative);
    if (access(path, R_OK) == 0)
      return path;
    mem_free(path);
  }
  return NULL;
}

static int make_one(const char *path, struct err *e)
{
  if (mkdir(path, 0777) == 0)
    return 0;
  int why = errno;
  struct stat st;
  if (stat(path, &st) == 0) {
    if (S_ISDIR(st.st_mode))
      return 0;
    why = ENOTDIR;
  }
  return err_set(e, "cannot make the directory %s: %s", path, strerror(why));
}

int paths_mkdirs(const char *path, struct err *e)
{
  char *part = mem_strdup(path);
  int status = 0;
  for (char *p = part + 1; part[0] && *p && status == 0; p++)
    if (*p == '/') {
      *p = '\0';
      status = make_one(part, e);
      *p = '/';
    }
  if (status == 0)
    status = make_one(part, e);
  mem_free(part);
  return status;
}
