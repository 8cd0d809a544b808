// Owners of OpenSSL's objects and its errors as ours; private to this module.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "base/base.h"

namespace http {

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;

// The error on top of OpenSSL's queue, which is emptied.
[[nodiscard]] std::unexpected<base::Error> openssl_error(std::string_view where);

// What both sides' contexts have in common: versions, groups, no renegotiation, no compression.
[[nodiscard]] base::Result<std::shared_ptr<SSL_CTX>> bare_context(const SSL_METHOD* method);

// A server context that presents exactly this certificate and answers to exactly this name.
[[nodiscard]] base::Result<std::shared_ptr<SSL_CTX>> leaf_context(std::string_view host, X509* leaf,
                                                                  EVP_PKEY* key);

}  // namespace http
