/* Data sets: sources and their messages, scaling, sharing, hashes, the stand-in for a set that is not installed. */
#include "config.h"

#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "tests/data/files.h"
#include "tests/tap/tap.h"

static const char *const train_x = "train-images-idx3-ubyte", *const train_y = "train-labels-idx1-ubyte";
static const char *const test_x = "t10k-images-idx3-ubyte", *const test_y = "t10k-labels-idx1-ubyte";

static uint8_t bytes[4096];

static void write_images(const char *name, uint32_t n, uint32_t h, uint32_t w, uint8_t first)
{
  uint8_t px[2048];
  for (size_t i = 0; i < (size_t)n * h * w; i++)
    px[i] = (uint8_t)(first + 13 * i);
  files_write(name, bytes, files_idx(bytes, 3, (uint32_t[]){n, h, w}, px, (size_t)n * h * w));
}

static void write_labels(const char *name, uint32_t n, const uint8_t *labels)
{
  files_write(name, bytes, files_idx(bytes, 1, &n, labels, n));
}

static void write_good(void)
{
  write_images(train_x, 20, 3, 2, 0);
  write_labels(train_y, 20, (uint8_t[]){0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1});
  write_images(test_x, 4, 3, 2, 101);
  write_labels(test_y, 4, (uint8_t[]){2, 1, 0, 0});
}

static struct dataset *must_open(const char *name, uint64_t seed)
{
  struct err e;
  struct dataset *d = dataset_open(name, seed, &e);
  if (!d)
    tap_bail("%s: %s", name, e.msg);
  return d;
}

/* Opening `name` fails; the message holds both texts. */
static void refused(const char *name, const char *part1, const char *part2, const char *label)
{
  struct err e = {""};
  struct dataset *d = dataset_open(name, 1, &e);
  bool good = !d && strstr(e.msg, part1) && strstr(e.msg, part2);
  ok(good, "%s", label);
  if (!good)
    tap_note("message: %s", d ? "(opened)" : e.msg);
  dataset_free(d);
}

static void idx_values(void)
{
  write_good();
  char *name = mem_printf("idx:%s", files_dir());
  struct dataset *d = must_open(name, 1);
  is_int(dataset_size(d, SPLIT_TRAIN), 20, "training samples");
  is_int(dataset_size(d, SPLIT_TEST), 4, "test samples");
  is_int(dataset_n_inputs(d), 6, "values an image");
  is_int(dataset_n_classes(d), 3, "classes are counted from the training labels");

  double sum = 0, sum2 = 0; /* of the bytes as written above */
  for (int i = 0; i < 120; i++) {
    double v = (uint8_t)(13 * i);
    sum += v;
    sum2 += v * v;
  }
  double mean = sum / 120, dev = sqrt(sum2 / 120 - mean * mean);
  float x[12];
  int32_t label[2];
  dataset_gather(d, SPLIT_TRAIN, (uint32_t[]){7, 2}, 2, x, label);
  is_int(label[0], 1, "label of sample 7");
  is_int(label[1], 2, "label of sample 2");
  double worst = 0;
  for (int i = 0; i < 6; i++) {
    worst = fmax(worst, fabs(x[i] - ((uint8_t)(13 * (42 + i)) - mean) / dev));
    worst = fmax(worst, fabs(x[6 + i] - ((uint8_t)(13 * (12 + i)) - mean) / dev));
  }
  ok(worst < 1e-6, "images are scaled by mean and deviation of the training split (off by %.1e)", worst);
  dataset_gather(d, SPLIT_TEST, (uint32_t[]){3}, 1, x, label);
  is_close(x[5], ((uint8_t)(101 + 13 * 23) - mean) / dev, 1e-6, "test images by the same");
  is_int(label[0], 0, "label of a test sample");

  char before[33];
  strcpy(before, dataset_hash(d));
  struct dataset *again = must_open(name, 5);
  ok(again == d, "a second user shares the copy, whatever the seed");
  dataset_free(again);
  is_str(dataset_hash(d), before, "which stays when one of them leaves");

  write_labels(test_y, 4, (uint8_t[]){2, 1, 0, 1});
  usleep(20000); /* past the file system's clock tick, so that the time of change differs */
  write_labels(test_y, 4, (uint8_t[]){2, 1, 0, 1});
  struct dataset *changed = must_open(name, 1);
  ok(changed != d && strcmp(dataset_hash(changed), before) != 0, "files that changed are read anew; the hash tells");
  dataset_free(changed);
  dataset_free(d);
  mem_free(name);
}

static void idx_lists(void)
{
  write_good();
  char *two = mem_printf("idx:%s,%s", files_path(train_x), files_path(train_y));
  struct dataset *d = must_open(two, 1);
  ok(dataset_size(d, SPLIT_TRAIN) == 18 && dataset_size(d, SPLIT_TEST) == 2, "two files: a tenth is held out");
  ok(dataset_notice(d) && strstr(dataset_notice(d), "last 2"), "and said so");
  float x[6];
  int32_t label;
  dataset_gather(d, SPLIT_TEST, (uint32_t[]){1}, 1, x, &label);
  is_int(label, 1, "held out from the end");
  dataset_free(d);
  mem_free(two);

  char *four =
      mem_printf("idx:%s,%s,%s,%s", files_path(train_x), files_path(train_y), files_path(test_x), files_path(test_y));
  char *dir = mem_printf("idx:%s", files_dir());
  struct dataset *a = must_open(four, 1), *b = must_open(dir, 1);
  is_str(dataset_hash(a), dataset_hash(b), "four files by path are those of the directory");
  ok(!dataset_notice(a), "without a notice");
  dataset_free(a);
  dataset_free(b);

  if (chdir(files_dir()) != 0)
    tap_bail("chdir");
  char *relative = mem_printf("idx:%s,%s", train_x, train_y);
  d = must_open(relative, 1);
  ok(strstr(dataset_name(d), files_path(train_x)), "the name holds absolute paths (%s)", dataset_name(d));
  dataset_free(d);
  mem_free(relative);
  mem_free(four);
  mem_free(dir);
}

static void idx_wrong(void)
{
  char *dir = mem_printf("idx:%s", files_dir());
  write_good();
  write_labels(train_y, 19, (uint8_t[19]){1});
  refused(dir, "20 images", "19 labels", "counts that differ");
  write_good();
  write_labels(test_y, 4, (uint8_t[]){2, 1, 3, 0});
  refused(dir, "label 3 of sample 2", "0 to 2", "a test label that training never shows");
  write_labels(test_y, 4, (uint8_t[]){0, 0, 0, 0});
  write_labels(train_y, 20, (uint8_t[20]){0});
  refused(dir, train_y, "two classes", "one class");
  write_good();
  write_images(test_x, 4, 2, 2, 0);
  refused(dir, "4 values", "6", "test images of another size");
  write_good();
  unlink(files_path(test_y));
  refused(dir, test_y, "no such file", "a missing file");
  write_good();
  files_cut(train_x, 100);
  refused(dir, train_x, "truncated", "a truncated file");
  mem_free(dir);

  refused("idx:/nonexistent-dir", "/nonexistent-dir", "no such directory", "a missing directory");
  refused("idx:", "0 files", "idx:DIR", "no path");
  refused("idx:/a,/b,/c", "3 files", "expected", "three files");
  refused("idx:/a,/b,/c,/d,/e", "more than four", "expected", "five files");
  refused("idx:/nonexistent-a,/b", "/nonexistent-a", "no such file", "a list with a missing file");
  refused("spiral", "did you mean 'spirals'?", "fashion-mnist", "an unknown name: near miss and list");
  refused("", "no data set ''", "teacher", "an empty name");
}

static void stand_in(void)
{
  setenv("BITDIAL_DATASETS", files_dir(), 1);
  struct dataset *d = must_open("auto", 1);
  is_str(dataset_name(d), "spirals", "auto is spirals where Fashion-MNIST is not installed");
  ok(dataset_notice(d) && strstr(dataset_notice(d), "dataset-fashion-mnist"), "with a notice");
  struct dataset *asked = must_open("spirals", 1);
  ok(!dataset_notice(asked), "which one who asked for spirals does not get");
  is_str(dataset_hash(asked), dataset_hash(d), "the values are the same");
  dataset_free(asked);
  dataset_free(d);
  refused("fashion-mnist", files_dir(), "apt-get install dataset-fashion-mnist", "asked for by name it is an error");
  unsetenv("BITDIAL_DATASETS");
}

static void synthetic(const char *name, size_t n_inputs, size_t n_classes)
{
  struct dataset *a = must_open(name, 1), *b = must_open(name, 2), *c = must_open(name, 1);
  ok(a == c && a != b, "%s: one copy a seed", name);
  ok(strcmp(dataset_hash(a), dataset_hash(b)) != 0, "%s: the seed decides the values", name);
  is_int(dataset_n_inputs(a), n_inputs, "%s: inputs", name);
  is_int(dataset_n_classes(a), n_classes, "%s: classes", name);
  float *x = mem_alloc(n_inputs * sizeof *x);
  size_t count[16] = {0}, n = dataset_size(a, SPLIT_TRAIN);
  double sum = 0, sum2 = 0;
  for (uint32_t i = 0; i < n; i++) {
    int32_t label;
    dataset_gather(a, SPLIT_TRAIN, &i, 1, x, &label);
    if (label < 0 || (size_t)label >= n_classes)
      tap_bail("%s: label %d", name, (int)label);
    count[label]++;
    for (size_t j = 0; j < n_inputs; j++) {
      sum += x[j];
      sum2 += (double)x[j] * x[j];
    }
  }
  double mean = sum / (double)(n * n_inputs), ms = sum2 / (double)(n * n_inputs);
  ok(fabs(mean) < 0.03 && fabs(ms - 1) < 0.1, "%s: mean 0 and mean square 1 (%.3f, %.3f)", name, mean, ms);
  size_t least = n;
  for (size_t k = 0; k < n_classes; k++)
    least = count[k] < least ? count[k] : least;
  ok(least * n_classes * 2 > n, "%s: no class is rarer than half its share (%zu of %zu)", name, least, n);
  mem_free(x);
  dataset_free(a);
  dataset_free(b);
  dataset_free(c);
}

/* The arms: a point's angle less that of its radius is 0 or half a turn, by its class, up to the noise. Noise of 0.02
 * (of radius 1) turns a point at radius r by 0.02/r and shifts its own angle along the arm by 0.02 * 2 pi 1.75; six
 * deviations of both at r > 0.5 stay below 1.6 rad; so at most one in 1e8 points is on the wrong side by chance. */
static void spirals_are_spirals(void)
{
  struct dataset *d = must_open("spirals", 3);
  size_t wrong = 0, far = 0;
  for (uint32_t i = 0; i < dataset_size(d, SPLIT_TEST); i++) {
    float x[2];
    int32_t label;
    dataset_gather(d, SPLIT_TEST, &i, 1, x, &label);
    double r = hypot(x[0], x[1]) / 2;
    if (r < 0.5)
      continue;
    far++;
    double side = cos(atan2(x[1], x[0]) - 2 * 3.14159265358979 * 1.75 * r);
    wrong += (side > 0) != (label == 0);
  }
  ok(far > 1000 && wrong == 0, "points lie on the arm of their class (%zu of %zu do not)", wrong, far);
  dataset_free(d);
}

static void no_memory(void)
{
  struct err e = {""};
  char *dir = mem_printf("idx:%s", files_dir());
  write_good();
  const char *const name[] = {dir, "spirals", "teacher"};
  for (size_t i = 0; i < 3; i++)
    for (uint64_t nth = 1; nth <= 4; nth++) {
      mem_fail_nth(nth);
      struct dataset *d = dataset_open(name[i], 77, &e);
      mem_fail_nth(0);
      ok(!d && e.msg[0], "%s: allocation %d fails cleanly", i ? name[i] : "idx", (int)nth);
      dataset_free(d);
    }
  mem_free(dir);
}

/* Known values of Fashion-MNIST: its README gives 60000 and 10000 images of 28 x 28 with classes of equal size; mean
 * 0.2860 and deviation 0.3530 of the pixels over 255 are those that everyone's normalisation uses. */
static void fashion(void)
{
  struct err e = {""};
  double t0 = clock_mono_s();
  struct dataset *d = dataset_open("fashion-mnist", 1, &e);
  double seconds = clock_mono_s() - t0;
  if (!d) {
    tap_skip("%s", e.msg);
    return;
  }
  tap_note("fashion-mnist opens in %.3f s", seconds);
  ok(dataset_size(d, SPLIT_TRAIN) == 60000 && dataset_size(d, SPLIT_TEST) == 10000, "fashion-mnist: sizes");
  ok(dataset_n_inputs(d) == 784 && dataset_n_classes(d) == 10, "fashion-mnist: shape");
  size_t count[10] = {0};
  double sum = 0, sum2 = 0, least = INFINITY, most = -INFINITY;
  float x[784];
  for (uint32_t i = 0; i < 60000; i++) {
    int32_t label;
    dataset_gather(d, SPLIT_TRAIN, &i, 1, x, &label);
    count[label]++;
    for (int j = 0; j < 784; j++) {
      sum += x[j];
      sum2 += (double)x[j] * x[j];
      least = fmin(least, x[j]);
      most = fmax(most, x[j]);
    }
  }
  bool equal = true;
  for (int k = 0; k < 10; k++)
    equal = equal && count[k] == 6000;
  ok(equal, "fashion-mnist: 6000 training images a class");
  is_close(sum / (60000.0 * 784), 0, 1e-5, "fashion-mnist: scaled to mean 0");
  is_close(sum2 / (60000.0 * 784), 1, 1e-5, "fashion-mnist: scaled to deviation 1");
  is_close(least, -0.2860 / 0.3530, 5e-4, "fashion-mnist: black");
  is_close(most, (1 - 0.2860) / 0.3530, 5e-4, "fashion-mnist: white");
  int32_t first[4];
  dataset_gather(d, SPLIT_TRAIN, (uint32_t[]){0}, 1, x, first);
  is_int(first[0], 9, "fashion-mnist: the first training image is an ankle boot");
  dataset_free(d);
}

int main(void)
{
  files_begin();
  idx_values();
  idx_lists();
  idx_wrong();
  stand_in();
  synthetic("spirals", 2, 2);
  synthetic("teacher", 32, 10);
  spirals_are_spirals();
  no_memory();
  fashion();
  files_end();
  return tap_done();
}
