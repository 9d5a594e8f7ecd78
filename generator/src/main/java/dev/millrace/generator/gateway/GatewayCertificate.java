package dev.millrace.generator.gateway;

import dev.millrace.log.SecretSettings;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.security.cert.X509Certificate;
import java.time.Clock;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.jspecify.annotations.Nullable;

/** Reads what a gateway's listener shows to its callers, as Kafka's clients read theirs, and refuses what no caller would take. */
final class GatewayCertificate {
    private GatewayCertificate() {}

    /**
     * What connections are made with.
     *
     * @throws IllegalArgumentException if a file is not there or cannot be read, a password is wrong, the key is not the
     *     certificate's, or the certificate is not valid at this time
     */
    static SSLContext context(GatewayTls tls, Clock clock) {
        String password = SecretSettings.text("gateway.tls.password", tls.password());
        char @Nullable [] characters = password.isEmpty() ? null : password.toCharArray();
        String place = tls.keyStore().isEmpty()
                ? "gateway.tls.certificate '" + tls.certificate() + "' with gateway.tls.key '" + tls.key() + "'"
                : "gateway.tls.key_store '" + tls.keyStore() + "'";
        KeyStore store = store(tls, password, place);
        try {
            require(store, characters, place, clock);
            KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(store, characters);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys.getKeyManagers(), null, null);
            return context;
        } catch (GeneralSecurityException e) {
            throw new IllegalArgumentException(place + " cannot be used: " + e.getMessage(), e);
        }
    }

    private static KeyStore store(GatewayTls tls, String password, String place) {
        Map<String, Object> settings = new HashMap<>();
        if (tls.keyStore().isEmpty()) {
            settings.put(SslConfigs.SSL_KEYSTORE_TYPE_CONFIG, DefaultSslEngineFactory.PEM_TYPE);
            settings.put(
                    SslConfigs.SSL_KEYSTORE_CERTIFICATE_CHAIN_CONFIG,
                    new Password(text("gateway.tls.certificate", tls.certificate())));
            settings.put(SslConfigs.SSL_KEYSTORE_KEY_CONFIG, new Password(text("gateway.tls.key", tls.key())));
        } else {
            text("gateway.tls.key_store", tls.keyStore());
            settings.put(SslConfigs.SSL_KEYSTORE_TYPE_CONFIG, "PKCS12");
            settings.put(SslConfigs.SSL_KEYSTORE_LOCATION_CONFIG, tls.keyStore());
            settings.put(SslConfigs.SSL_KEYSTORE_PASSWORD_CONFIG, new Password(password));
        }
        if (!password.isEmpty()) {
            settings.put(SslConfigs.SSL_KEY_PASSWORD_CONFIG, new Password(password));
        }
        try (DefaultSslEngineFactory files = new DefaultSslEngineFactory()) {
            ConfigDef known = new ConfigDef();
            SslConfigs.addClientSslSupport(known);
            files.configure(known.parse(settings));
            return files.keystore();
        } catch (KafkaException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new IllegalArgumentException(
                    place + " cannot be read: " + cause.getMessage()
                            + (tls.keyStore().isEmpty()
                                    ? "; a certificate is PEM, and a key is PEM in PKCS#8 (openssl pkcs8 -topk8 -nocrypt), or"
                                            + " encrypted with gateway.tls.password"
                                    : "; it must be PKCS12, and gateway.tls.password must be its password"),
                    e);
        }
    }

    /** What a file holds, byte for byte. */
    private static String text(String setting, String path) {
        try {
            return new String(Files.readAllBytes(Path.of(path)), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            throw new IllegalArgumentException(
                    setting + " names '" + path + "', and no such file can be read: " + e.getMessage(), e);
        }
    }

    private static void require(KeyStore store, char @Nullable [] password, String place, Clock clock)
            throws GeneralSecurityException {
        List<String> named = Collections.list(store.aliases()).stream()
                .filter(name -> isKey(store, name))
                .toList();
        if (named.size() != 1) {
            throw new IllegalArgumentException(
                    place + " has " + named.size() + " private keys, and a listener has one; leave one in it");
        }
        Key key = store.getKey(named.get(0), password);
        X509Certificate certificate = (X509Certificate) store.getCertificate(named.get(0));
        if (!isOf((PrivateKey) key, certificate)) {
            throw new IllegalArgumentException(place + ": the key is not that of the certificate of "
                    + certificate.getSubjectX500Principal() + "; name the key that it was made with");
        }
        try {
            certificate.checkValidity(Date.from(clock.instant()));
        } catch (CertificateExpiredException | CertificateNotYetValidException e) {
            throw new IllegalArgumentException(
                    place + ": the certificate of " + certificate.getSubjectX500Principal() + " is valid from "
                            + certificate.getNotBefore().toInstant() + " to "
                            + certificate.getNotAfter().toInstant() + " and not now, " + clock.instant()
                            + ", so that every caller would refuse it",
                    e);
        }
    }

    private static boolean isKey(KeyStore store, String name) {
        try {
            return store.isKeyEntry(name);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("a key store that was loaded cannot be asked", e);
        }
    }

    /** Whether what the one signs the other knows. */
    private static boolean isOf(PrivateKey key, X509Certificate certificate) throws GeneralSecurityException {
        String kind = key.getAlgorithm();
        String algorithm = switch (kind) {
            case "RSA" -> "SHA256withRSA";
            case "EC" -> "SHA256withECDSA";
            case "DSA" -> "SHA256withDSA";
            default -> kind;
        };
        if (!kind.equals(certificate.getPublicKey().getAlgorithm())) {
            return false;
        }
        byte[] message = {1, 2, 3};
        Signature signature = Signature.getInstance(algorithm);
        signature.initSign(key);
        signature.update(message);
        byte[] signed = signature.sign();
        signature.initVerify(certificate.getPublicKey());
        signature.update(message);
        return signature.verify(signed);
    }
}
