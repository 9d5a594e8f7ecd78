package dev.millrace.gateway;

import com.sun.net.httpserver.BasicAuthenticator;
import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpPrincipal;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import dev.millrace.log.SecretSettings;
import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Key;
import java.security.KeyStore;
import java.security.MessageDigest;
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
import java.util.Optional;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.jspecify.annotations.Nullable;

/**
 * An HTTP port. With a token it admits callers that send it as bearer token or password of any user; without one,
 * {@link LocalCallers}.
 */
public final class HttpListener implements AutoCloseable {
    private final HttpConfig config;
    private final HttpToken token;
    private final HttpServer server;
    private final RequestThreads threads;

    private HttpListener(HttpConfig config, HttpToken token, HttpServer server, RequestThreads threads) {
        this.config = config;
        this.token = token;
        this.server = server;
        this.threads = threads;
    }

    /**
     * Opens a port; serves after {@link #start}.
     *
     * @param port 0 for any free one
     * @param threads closed with the listener
     * @throws IllegalArgumentException if the port is taken (with its cause), or token or certificate are unusable
     */
    public static HttpListener open(HttpConfig config, int port, String option, RequestThreads threads) {
        return open(config, port, option, threads, System.getenv());
    }

    static HttpListener open(
            HttpConfig config, int port, String option, RequestThreads threads, Map<String, String> environment) {
        HttpToken token = HttpToken.of("http.token_variable", config.tokenVariable(), environment);
        String where = "port " + port + " on " + (HttpConfig.isLoopback(config.host()) ? "loopback" : config.host());
        try {
            InetSocketAddress address = new InetSocketAddress(config.host(), port);
            return new HttpListener(
                    config, token, server(address, 0, context(config.tls(), Clock.systemUTC())), threads);
        } catch (BindException e) {
            throw new IllegalArgumentException(
                    String.valueOf(e.getMessage()).contains("assign")
                            ? "http.host must be an address of this machine: '" + config.host() + "'"
                            : where + " is taken; give " + option + " another one, or 0 for any free one",
                    e);
        } catch (IOException e) {
            throw new IllegalArgumentException("cannot open " + where + ": " + e.getMessage(), e);
        }
    }

    /** @param tls empty for none */
    static HttpServer server(InetSocketAddress address, int backlog, Optional<SSLContext> tls) throws IOException {
        HttpDefaults.apply();
        if (tls.isEmpty()) {
            return HttpServer.create(address, backlog);
        }
        HttpsServer server = HttpsServer.create(address, backlog);
        server.setHttpsConfigurator(new HttpsConfigurator(tls.get()));
        return server;
    }

    /** Without a trailing slash. */
    static String url(HttpServer server, String host) {
        return (server instanceof HttpsServer ? "https://" : "http://")
                + (host.contains(":") ? "[" + host + "]" : host) + ":"
                + server.getAddress().getPort();
    }

    /** Empty without TLS. As {@link Certificate#context}. */
    static Optional<SSLContext> context(HttpTls tls, Clock clock) {
        return tls.isOn() ? Optional.of(Certificate.context(tls, clock)) : Optional.empty();
    }

    /** Serves admitted callers at and below a path. */
    public void serve(String path, HttpHandler handler) {
        HttpContext context = context(path, handler);
        if (token.isAsked()) {
            context.setAuthenticator(new TokenCheck(token));
        } else {
            context.getFilters().add(new LocalCallers());
        }
    }

    /** Serves everyone; answers must hold no secret. */
    public void serveEveryone(String path, HttpHandler handler) {
        context(path, handler);
    }

    private HttpContext context(String path, HttpHandler handler) {
        HttpContext context = server.createContext(path, handler);
        context.getFilters().add(threads.filter());
        return context;
    }

    public void start() {
        server.setExecutor(threads);
        server.start();
    }

    public int port() {
        return server.getAddress().getPort();
    }

    /** Without a trailing slash. */
    public String url() {
        return url(server, config.host());
    }

    @Override
    public void close() {
        server.stop(0);
        threads.close();
    }

    private static final class TokenCheck extends BasicAuthenticator {
        private final HttpToken token;

        TokenCheck(HttpToken token) {
            super("millrace");
            this.token = token;
        }

        @Override
        public Result authenticate(HttpExchange exchange) {
            String header = exchange.getRequestHeaders().getFirst("Authorization");
            return header != null && token.lets(header)
                    ? new Success(new HttpPrincipal("bearer", getRealm()))
                    : super.authenticate(exchange);
        }

        @Override
        public boolean checkCredentials(String user, String password) {
            return token.lets("Bearer " + password);
        }
    }

    /** Loads certificates as Kafka's clients do, and refuses unusable ones. */
    static final class Certificate {
        private Certificate() {}

        /**
         * @throws IllegalArgumentException if a file is unreadable, a password wrong, the key not the certificate's,
         *     or the certificate not valid now
         */
        static SSLContext context(HttpTls tls, Clock clock) {
            String password = SecretSettings.text("http.tls.password", tls.password());
            char @Nullable [] characters = password.isEmpty() ? null : password.toCharArray();
            String place = tls.keyStore().isEmpty()
                    ? "http.tls.certificate '" + tls.certificate() + "' with http.tls.key '" + tls.key() + "'"
                    : "http.tls.key_store '" + tls.keyStore() + "'";
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

        private static KeyStore store(HttpTls tls, String password, String place) {
            Map<String, Object> settings = new HashMap<>();
            if (tls.keyStore().isEmpty()) {
                settings.put(SslConfigs.SSL_KEYSTORE_TYPE_CONFIG, DefaultSslEngineFactory.PEM_TYPE);
                settings.put(
                        SslConfigs.SSL_KEYSTORE_CERTIFICATE_CHAIN_CONFIG,
                        new Password(text("http.tls.certificate", tls.certificate())));
                settings.put(SslConfigs.SSL_KEYSTORE_KEY_CONFIG, new Password(text("http.tls.key", tls.key())));
            } else {
                text("http.tls.key_store", tls.keyStore());
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
                                                + " encrypted with http.tls.password"
                                        : "; it must be PKCS12, and http.tls.password must be its password"),
                        e);
            }
        }

        /** Byte for byte. */
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
                                + certificate.getNotAfter().toInstant() + ", and now is " + clock.instant()
                                + ", so every caller would reject it",
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

        /** True if the key pair matches. */
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

    /** The bearer token, if one is required. */
    static final class HttpToken {
        private static final int LEAST = 16;

        private final byte @Nullable [] expected;

        private HttpToken(byte @Nullable [] expected) {
            this.expected = expected;
        }

        /**
         * @param variable empty for none
         * @throws IllegalArgumentException if the variable is missing or the token too short
         */
        static HttpToken of(String key, String variable, Map<String, String> environment) {
            if (variable.isEmpty()) {
                return new HttpToken(null);
            }
            String token = environment.getOrDefault(variable, "");
            if (token.length() < LEAST) {
                throw new IllegalArgumentException(key + " is " + variable
                        + ", and that environment variable holds " + token.length()
                        + " characters; a token has at least "
                        + LEAST + ", so set it before the start: openssl rand -hex 32");
            }
            return new HttpToken(("Bearer " + token).getBytes(StandardCharsets.UTF_8));
        }

        /** True if calls must carry a token. */
        boolean isAsked() {
            return expected != null;
        }

        /** Compares in constant time. */
        boolean lets(@Nullable String authorization) {
            return expected == null
                    || authorization != null
                            && MessageDigest.isEqual(expected, authorization.getBytes(StandardCharsets.UTF_8));
        }
    }
}
