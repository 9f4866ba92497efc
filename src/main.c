#include "ui/ui.h"

int main(void)
{
  return 0;
}
