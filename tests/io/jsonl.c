/* What is written reads back with jansson, whatever goes in. */
#include "config.h"

#include "io/jsonl.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "tests/tap/tap.h"

static void test_object(void)
{
  struct jsonl j = {0};
  jsonl_begin(&j);
  is_str(jsonl_end(&j), "{}", "nothing");
  jsonl_begin(&j);
  jsonl_str(&j, "kind", "step");
  jsonl_int(&j, "step", INT64_MIN);
  jsonl_real(&j, "loss", 0.1);
  jsonl_real(&j, "nan", -NAN);
  jsonl_real(&j, "inf", INFINITY);
  jsonl_real(&j, "ninf", -INFINITY);
  jsonl_bool(&j, "t", true);
  jsonl_bool(&j, "f", false);
  jsonl_str(&j, "none", NULL);
  jsonl_raw(&j, "list", "[1,2]");
  const char *line = jsonl_end(&j);
  is_str(line,
         "{\"kind\":\"step\",\"step\":-9223372036854775808,\"loss\":0.1,\"nan\":\"NaN\",\"inf\":\"Infinity\","
         "\"ninf\":\"-Infinity\",\"t\":true,\"f\":false,\"none\":null,\"list\":[1,2]}",
         "an object, byte by byte");
  json_t *v = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
  ok(v && json_integer_value(json_object_get(v, "step")) == INT64_MIN, "reads back");
  json_decref(v);
  jsonl_done(&j);
}

static void test_numbers(void)
{
  static const double value[] = {0.0, -0.0, 1e300, 5e-324, 1.0 / 3, 123456789012345678.0, 1e15, 0.1 + 0.2};
  struct jsonl j = {0};
  for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
    jsonl_begin(&j);
    jsonl_real(&j, "v", value[i]);
    const char *line = jsonl_end(&j);
    json_t *v = json_loads(line, 0, NULL);
    double got = v ? json_number_value(json_object_get(v, "v")) : NAN;
    ok(got == value[i], "%s reads back as %.17g", line, value[i]);
    json_decref(v);
  }
  jsonl_done(&j);
}

static void test_quote(void)
{
  static const struct {
    const char *text, *want;
  } row[] = {
      {"", "\"\""},
      {"a\"b\\c", "\"a\\\"b\\\\c\""},
      {"\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""},
      {"gr\xc3\xbc\xc3\x9f \xe2\x88\x87 \xf0\x9f\x8e\xb2", "\"gr\xc3\xbc\xc3\x9f \xe2\x88\x87 \xf0\x9f\x8e\xb2\""},
      {"\xff", "\"\xef\xbf\xbd\""},
      {"\xc3", "\"\xef\xbf\xbd\""},                                         /* cut off */
      {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                         /* overlong */
      {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},         /* surrogate */
      {"\xf4\x90\x80\x80z", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""}, /* beyond U+10FFFF */
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    struct str s = {0};
    json_quote(&s, row[i].text);
    is_str(s.s, row[i].want, "quoted text %zu", i);
    str_done(&s);
  }
  /* Every pair of bytes must come out as JSON that a strict reader takes. */
  int n_bad = 0;
  for (int a = 1; a < 256; a++)
    for (int b = 1; b < 256; b++) {
      char text[] = {(char)a, (char)b, 0};
      struct str s = {0};
      json_quote(&s, text);
      json_t *v = json_loads(s.s, JSON_DECODE_ANY, NULL);
      n_bad += !v;
      json_decref(v);
      str_done(&s);
    }
  is_int(n_bad, 0, "all pairs of bytes become valid JSON");
}

int main(void)
{
  test_object();
  test_numbers();
  test_quote();
  return tap_done();
}
