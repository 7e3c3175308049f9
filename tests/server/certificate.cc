#include "server/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace bide::server_tests {

namespace {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};

template <class T>
std::unique_ptr<T, Free> owned(T* thing, const char* what) {
  if (thing == nullptr) throw std::runtime_error(what);
  return std::unique_ptr<T, Free>(thing);
}

}  // namespace

void write_certificate(const std::string& certificate_file, const std::string& key_file, const std::string& name) {
  const auto key = owned(EVP_EC_gen("P-256"), "no key");
  const auto certificate = owned(X509_new(), "no certificate");
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86'400);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) throw std::runtime_error("not signed");
  const auto to = owned(std::fopen(certificate_file.c_str(), "w"), "no certificate file");
  const auto key_to = owned(std::fopen(key_file.c_str(), "w"), "no key file");
  if (PEM_write_X509(to.get(), certificate.get()) != 1 ||
      PEM_write_PrivateKey(key_to.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    throw std::runtime_error("not written");
  }
}

}  // namespace bide::server_tests
