#!/bin/sh
# mutants.sh MODEL_TEST: every fault of the model must be caught by a test of the suite. A fault that is not caught, or
# that ends the program in any other way than by a failed test, fails this.
set -u
model_test=$1
# Whatever the model delivers, it delivers at once.
export BIDE_PATIENCE_MS=500
missed=0
count=0
for fault in $(BIDE_MODEL_FAULT=list "$model_test" --gtest_filter='*EmptyBatchGivesNoResults*' | grep -E '^[a-z_]+$'); do
  count=$((count + 1))
  output=$(BIDE_MODEL_FAULT=$fault "$model_test" --gtest_fail_fast --gtest_brief=1 2>&1)
  status=$?
  caught=$(printf '%s\n' "$output" | sed -n 's/^\[  FAILED  \] Model\/BrokerConformance\.\([A-Za-z]*\).*/\1/p' | head -n 1)
  if [ "$status" -eq 1 ] && [ -n "$caught" ]; then
    printf 'caught  %-28s by %s\n' "$fault" "$caught"
  else
    printf 'MISSED  %s (exit %s)\n' "$fault" "$status"
    missed=$((missed + 1))
  fi
done
printf 'mutants: %s seeded, %s missed\n' "$count" "$missed"
[ "$count" -ge 25 ] && [ "$missed" -eq 0 ]
