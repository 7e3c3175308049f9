// The suite against its own model. BIDE_MODEL_FAULT names a fault for the model to have: then the run must fail, which
// mutants.sh checks for every one of them; `list` names them all.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "conformance/broker_conformance.h"
#include "conformance/model_broker.h"

namespace bide::conformance {
namespace {

ModelFault chosen_fault() {
  const char* name = std::getenv("BIDE_MODEL_FAULT");
  if (name != nullptr && std::string_view(name) == "list") {
    for (int i = 1; i < static_cast<int>(ModelFault::kLast); ++i) std::puts(to_string(static_cast<ModelFault>(i)).data());
    std::exit(0);
  }
  for (int i = 0; i < static_cast<int>(ModelFault::kLast); ++i) {
    const auto fault = static_cast<ModelFault>(i);
    if (name == nullptr ? fault == ModelFault::kNone : to_string(fault) == name) return fault;
  }
  std::fprintf(stderr, "BIDE_MODEL_FAULT: there is no fault %s\n", name);
  std::exit(2);
}

class ModelSubject : public Subject {
 public:
  Broker& broker() override { return broker_; }
  Inspector& inspector() override { return broker_; }
  void reopen() override { broker_.restart(); }
  void advance(Milliseconds by) override {
    clock_.advance(by);
    broker_.wake();
  }
  void step_wall_clock(Milliseconds by) override {
    clock_.step_wall(by);
    broker_.wake();
  }
  Time now() override { return Time(Milliseconds(clock_.now().wall_us / 1000)); }
  std::optional<Milliseconds> retention() override { return ModelBroker::kRetention; }

 private:
  support::VirtualClock clock_;
  ModelBroker broker_{clock_, chosen_fault()};
};

INSTANTIATE_TEST_SUITE_P(Model, BrokerConformance,
                         testing::Values(SubjectParam{"model", [] { return std::make_unique<ModelSubject>(); }}),
                         SubjectParam::name_of);

}  // namespace
}  // namespace bide::conformance
