package dev.millrace.gateway;

import dev.millrace.log.SecretText;

/**
 * TLS of the listeners: a certificate and its key in PEM, or both in a key store. Empty disables TLS.
 *
 * @param certificate PEM file of the certificate chain; empty for none
 * @param key PEM file of the PKCS#8 key, may be the same file; empty for none
 * @param keyStore PKCS12 file in place of both; empty for none
 * @param password password of key store or key, or a reference such as {@code ${env:NAME}}; never shown
 */
public record HttpTls(String certificate, String key, String keyStore, SecretText password) {

    public HttpTls {
        if (certificate.isEmpty() != key.isEmpty()) {
            throw new IllegalArgumentException("certificate and key must be given both or neither, and only "
                    + (key.isEmpty() ? "certificate is: '" + certificate : "key is: '" + key)
                    + "'; they may name the same file");
        }
        if (!keyStore.isEmpty() && !certificate.isEmpty()) {
            throw new IllegalArgumentException("key_store must be empty where certificate and key are given: '"
                    + keyStore + "'; one of both has the key");
        }
        if (!keyStore.isEmpty() && password.isEmpty()) {
            throw new IllegalArgumentException(
                    "password must be given for key_store '" + keyStore + "', such as ${env:NAME} or ${file:PATH:KEY}");
        }
        if (!password.isEmpty() && keyStore.isEmpty() && key.isEmpty()) {
            throw new IllegalArgumentException(
                    "password must be empty where there is neither key_store nor key; name one of them");
        }
    }

    public static HttpTls none() {
        return new HttpTls("", "", "", SecretText.ofSetting("password", ""));
    }

    public boolean isOn() {
        return !certificate.isEmpty() || !keyStore.isEmpty();
    }
}
