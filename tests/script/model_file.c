/* Model files: what they may say, and a clear message for each way to get one wrong. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tap/tap.h"
#include "fixture.h"
#include "model/graph.h"

static struct fixture f;

static const char *const sizes[] = {"inputs=784", "classes=10"};

static int load(const char *name, struct model_desc *d, struct err *e)
{
  *e = (struct err){""};
  return vm_load_model(f.vm, name, sizes, 2, d, e);
}

static void test_mlp(void)
{
  struct model_desc d;
  struct err e;
  is_int(load("mlp", &d, &e), 0, "models/mlp.lua loads %s", e.msg);
  is_str(d.name, "mlp", "its name");
  is_str(d.loss, "cross_entropy", "its loss");
  is_int(d.n_inputs, 784, "its inputs are the data set's");
  is_int(d.n_outputs, 10, "its outputs are the data set's classes");
  is_int(d.n_layers, 5, "five layers");
  is_str(d.layer[0].kind, "linear", "the first is linear");
  is_str(d.layer[0].name, "fc1", "and named fc1");
  is_str(d.layer[4].name, "fc3", "the third linear one is fc3");
  is_int((int64_t)desc_option(&d.layer[0], "out", 0), 512, "512 wide");
  is_int((int64_t)desc_option(&d.layer[2], "out", 0), 256, "then 256");
  is_int(d.layer[0].input, -1, "the first takes the model's input");
  is_int(d.layer[4].input, 3, "the last takes the one before");
  bool lr = false;
  for (int i = 0; i < d.n_knob_defaults; i++)
    lr = lr || (strcmp(d.knob_default[i].knob, "lr") == 0 && strcmp(d.knob_default[i].value, "0.05") == 0);
  ok(lr, "it sets the default lr");
  struct graph *g = graph_create(&d, 1, 8, &e);
  ok(g != NULL, "a graph can be made of it");
  if (g)
    is_int(graph_n_weights(g), 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10, "with all its weights");
  graph_free(g);
  desc_done(&d);
}

static void test_forms(void)
{
  struct model_desc d;
  struct err e;
  write_file("m1.lua",
             "local net = {}\n"
             "for i = 1, 3 do net[#net + 1] = { linear { 8 * i, name = 'block' .. i, bias = i > 1 }, relu() } end\n"
             "return model { name = 'deep', inputs = 784, net, linear(24, 10) }\n");
  is_int(load("m1.lua", &d, &e), 0, "a plain table, lists in lists, named layers %s", e.msg);
  is_str(d.name, "deep", "a name of its own");
  is_int(d.n_layers, 7, "lists in lists are their layers");
  is_str(d.layer[2].name, "block2", "a layer's own name");
  is_int((int64_t)desc_option(&d.layer[0], "bias", 1), 0, "an option in a table");
  is_int((int64_t)desc_option(&d.layer[6], "in", 0), 24, "linear(in, out) as in PyTorch: in");
  is_int((int64_t)desc_option(&d.layer[6], "out", 0), 10, "and out");
  desc_done(&d);
}

/* Each row: a file and what its message must hold. */
static void test_refused(void)
{
  static const struct {
    const char *text, *want;
  } row[] = {
      {"this is not Lua", "bad.lua:1:"},
      {"\x1bLuaS\x01", "bad.lua"},
      {"return 3", "must return model"},
      {"", "returned nothing"},
      {"return model { linear(10), 'relu' }", "item 2 is a string, not a layer"},
      {"return model { linear(10), relu }", "with parentheses"},
      {"return model {}", "no layers"},
      {"return linear(10)", "single layer"},
      {"return model { linear { 10, biass = false } }", "bias"},
      {"return model { linear(1, 2, 3, 4) }", "at most"},
      {"return model { linear(7) }", "gives 7 values, but there are 10 classes"},
      {"return model { inputs = 100, linear(10) }", "inputs = 100, but the data set has 784"},
      {"return model { linear { 5, name = 'a' }, linear { 10, name = 'a' } }", "two layers are named 'a'"},
      {"return model { linear('ten') }", "names no layer"},
      {"return model { linear(10), defaults = { lrr = 1 } }", "lr"},
      {"return model { linear(10), lost = 'x' }", "loss"},
      {"return model { linear { 10, name = 'a\\n' } }", "control character (code 10)"},
      {"return model { linear { 10, name = '' } }", "is empty"},
      {"return model { name = {}, linear(10) }", "name is a table; it must be a string"},
      {"return function(o) error('on purpose') end", "on purpose"},
      {"return function(o) return io.open('/etc/passwd') end", "io"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    struct model_desc d;
    struct err e;
    write_file("bad.lua", row[i].text);
    bool refused = load("bad.lua", &d, &e) != 0;
    ok(refused && strstr(e.msg, row[i].want) && strstr(e.msg, "bad.lua"), "refused: %.60s", row[i].text);
    tap_note("%s", e.msg);
    if (!refused)
      desc_done(&d);
  }
}

/* What a file does to the library stays in the file. */
static void test_library_kept(void)
{
  struct model_desc d;
  struct err e;
  write_file("m1.lua", "string.format, table.concat, math.pi = nil, nil, 3\nreturn model { linear(10) }\n");
  is_int(load("m1.lua", &d, &e), 0, "a file that spoils string, table and math %s", e.msg);
  desc_done(&d);
  is_str(says(&f, "print(string.format('%.5f', math.pi), table.concat({ 1, 2 }))"), "3.14159\t12", "spoils its own");
}

static void test_missing(void)
{
  struct model_desc d;
  struct err e;
  ok(load("mpl", &d, &e) != 0 && strstr(e.msg, "did you mean 'mlp'"), "an unknown name: %s", e.msg);
  ok(load("nowhere/at-all.lua", &d, &e) != 0 && strstr(e.msg, "nowhere/at-all.lua"), "no such file: %s", e.msg);
}

/* Shapes are the graph's to check; the message must name the layer whichever way the run is made. */
static void test_shapes(void)
{
  struct err e = {""};
  write_file("bad.lua", "return model { linear(2, 30), relu(), linear(20, 2) }");
  const char *const pairs[] = {"model", "bad.lua", "data", "spirals"};
  ok(vm_make_run(f.vm, pairs, 2, "/dev/null", &e) < 0, "mismatched shapes are refused");
  ok(strstr(e.msg, "fc2") && strstr(e.msg, "20") && strstr(e.msg, "30"), "and named: %s", e.msg);
  is_int(vm_current_run(f.vm), 0, "no run was made");
}

int main(void)
{
  fixture_begin(&f, false);
  test_mlp();
  test_forms();
  test_refused();
  test_library_kept();
  test_missing();
  test_shapes();
  fixture_end(&f);
  unlink("m1.lua");
  unlink("bad.lua");
  return tap_done();
}
