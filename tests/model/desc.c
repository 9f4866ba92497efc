/* Descriptions: names made where none is given, options, deep copies. */
#include "config.h"

#include "model/desc.h"

#include "helper.h"

int main(void)
{
  struct model_desc d = {.name = "m", .n_inputs = 4, .n_outputs = 2}, c;
  desc_add_layer(&d, "linear", "first");
  struct layer_desc *l = desc_add_layer(&d, "relu", NULL);
  is_str(l->name, "relu2", "a name from kind and place");
  is_int(l->input, 0, "it takes the output of the one before");
  is_int(d.layer[0].input, -1, "the first takes the data");
  desc_set_option(&d.layer[0], "out", 7);
  desc_set_option(&d.layer[0], "out", 8);
  is_int(d.layer[0].n_options, 1, "an option set twice is there once");
  is_int(desc_option(&d.layer[0], "out", 1), 8, "with the last value");
  is_int(desc_option(&d.layer[0], "bias", 1), 1, "one not set has its default");
  desc_add_knob_default(&d, "lr", "0.05");
  desc_copy(&c, &d);
  desc_set_option(&d.layer[0], "out", 9);
  strcpy(d.knob_default[0].value, "1");
  is_int(desc_option(&c.layer[0], "out", 1), 8, "a copy is its own: options");
  is_str(c.knob_default[0].value, "0.05", "and knobs");
  desc_add_layer(&c, "a_kind_whose_name_is_far_too_long", "");
  ok(strlen(c.layer[2].name) < DESC_NAME, "long names are cut");
  desc_done(&d);
  desc_done(&c);
  is_int(c.n_layers, 0, "nothing left");
  return tap_done();
}
