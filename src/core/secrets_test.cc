#include "core/url_escape.h"

#include <gtest/gtest.h>

namespace bide::core {
namespace {

TEST(Secrets, APasswordInAUrlIsLeftOut) {
  EXPECT_EQ(without_secrets("amqp://ann:pass@host/x"), "amqp://ann:***@host/x");
  EXPECT_EQ(without_secrets("no 'bide://u:p@h/..' and redis://:p@h:6379"),
            "no 'bide://u:***@h/..' and redis://:***@h:6379");
  EXPECT_EQ(without_secrets("amqp://ann:pa/ss@word@host/x"), "amqp://ann:***@host/x");
}

TEST(Secrets, APasswordThatWasCutIsLeftOutToo) {
  EXPECT_EQ(without_secrets("'amqp://ann:pas'..."), "'amqp://ann:***'...");
}

TEST(Secrets, EverythingElseStays) {
  for (const char* text : {"", "plain: text", "http://127.0.0.1:7070/x", "http://[::1]:7070/", "amqp://ann@host/",
                           "a://", "http://host/a:b", "cannot reach http://host:7070: refused", "(http://host:7070)."}) {
    EXPECT_EQ(without_secrets(text), text);
  }
}

}  // namespace
}  // namespace bide::core
