package dev.millrace.log.run;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.security.GeneralSecurityException;
import java.security.InvalidAlgorithmParameterException;
import java.security.UnrecoverableKeyException;
import java.security.cert.CertPathBuilderException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.security.auth.login.LoginException;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.IllegalSaslStateException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.errors.UnsupportedSaslMechanismException;
import org.apache.kafka.common.utils.Utils;

/**
 * Why the first contact with a cluster failed, as a sentence: host, trust store, certificate, login, rights, or a listener that speaks
 * something else than the client.
 *
 * <p>A client that is cut off without a reason reports a timeout. Then the listener is asked what it speaks.
 */
final class ConnectionFailure {
    private static final Pattern STORE = Pattern.compile("Failed to load SSL keystore (.*) of type \\S+");
    private static final Pattern ALERT = Pattern.compile("(?:Received fatal alert: |^\\()([a-z_]+)");
    private static final String SETTINGS = " (client settings go under kafka: or into the file of --command-config)";

    private final String brokers;
    private final Map<String, Object> settings;
    private final long timeoutMs;

    /** @param settings of the client, {@code bootstrap.servers} among them */
    ConnectionFailure(Map<String, Object> settings, long timeoutMs) {
        this.brokers = String.valueOf(settings.get("bootstrap.servers"));
        this.settings = settings;
        this.timeoutMs = timeoutMs;
    }

    /** Of a client that could not be made. */
    LogSetupException made(KafkaException failure) {
        List<Throwable> causes = causes(failure);
        String why = store(causes)
                .or(() -> first(causes, LoginException.class)
                        .map(e -> "sasl.jaas.config cannot be used: " + e.getMessage() + "; correct it" + SETTINGS))
                .orElseGet(() -> message(causes));
        return new LogSetupException("cannot connect to bootstrap_servers=" + brokers + ": " + why, failure);
    }

    /** Of a client that got no answer. */
    LogSetupException asked(Throwable failure) {
        List<Throwable> causes = causes(failure);
        if (first(causes, SslAuthenticationException.class).isPresent()) {
            return new LogSetupException(
                    "no TLS connection to bootstrap_servers=" + brokers + ": " + tls(causes), failure);
        }
        Optional<AuthenticationException> login = first(causes, AuthenticationException.class);
        if (login.isPresent()) {
            return new LogSetupException(
                    "no login at bootstrap_servers=" + brokers + ": " + login(login.get()) + SETTINGS, failure);
        }
        Optional<AuthorizationException> rights = first(causes, AuthorizationException.class);
        if (rights.isPresent()) {
            return new LogSetupException(
                    "not authorized at bootstrap_servers=" + brokers + ": "
                            + rights.get().getMessage() + "; grant the right, or log in as another user",
                    failure);
        }
        Listener listener = Listener.at(brokers);
        Optional<String> contradiction = contradiction(listener);
        if (contradiction.isPresent()) {
            return new LogSetupException(contradiction.get() + SETTINGS, failure);
        }
        String why = failure.getMessage() == null ? "" : " (" + failure.getMessage() + ")";
        String sentence = listener.speaks() == Listener.Speech.NOTHING
                ? "no broker answers at bootstrap_servers=" + brokers + " within timeout_ms=" + timeoutMs
                        + "; start it, or correct the address" + why
                : away(listener) + why;
        return failure instanceof RetriableException || failure instanceof TimeoutException
                ? new BrokerUnavailableException(sentence, failure)
                : new LogSetupException(sentence, failure);
    }

    /** A store that is not there or cannot be read. */
    private static Optional<String> store(List<Throwable> causes) {
        Optional<String> path = causes.stream()
                .map(cause -> STORE.matcher(String.valueOf(cause.getMessage())))
                .filter(Matcher::find)
                .map(found -> found.group(1))
                .findFirst();
        if (path.isEmpty()) {
            return first(causes, UnrecoverableKeyException.class)
                    .map(e -> "the private key cannot be read with ssl.key.password (" + e.getMessage()
                            + "); correct the password" + SETTINGS);
        }
        String what = "the trust store or key store " + path.get();
        if (first(causes, NoSuchFileException.class).isPresent()) {
            return Optional.of(what + " does not exist; create it, or correct ssl.truststore.location or"
                    + " ssl.keystore.location" + SETTINGS);
        }
        if (first(causes, AccessDeniedException.class).isPresent()) {
            return Optional.of(what + " cannot be read by this user; allow it, or name another file" + SETTINGS);
        }
        boolean isPassword = first(causes, UnrecoverableKeyException.class).isPresent()
                || causes.stream()
                        .anyMatch(cause -> String.valueOf(cause.getMessage()).contains("password was incorrect"));
        return Optional.of(
                isPassword
                        ? "the password of " + what + " is wrong; correct ssl.truststore.password or"
                                + " ssl.keystore.password" + SETTINGS
                        : what + " cannot be read (" + message(causes) + "); correct the file, or"
                                + " ssl.truststore.type or ssl.keystore.type" + SETTINGS);
    }

    private String tls(List<Throwable> causes) {
        String why = " (" + message(causes) + ")";
        if (first(causes, CertificateExpiredException.class).isPresent()) {
            return "the broker's certificate has expired" + why + "; renew it on the broker";
        }
        if (first(causes, CertificateNotYetValidException.class).isPresent()) {
            return "the broker's certificate is not valid yet" + why + "; compare the clocks of both machines";
        }
        if (first(causes, CertPathBuilderException.class).isPresent()) {
            return "the broker's certificate is signed by a CA that " + trustStore() + " does not hold" + why
                    + "; import the CA's certificate, or correct ssl.truststore.location" + SETTINGS;
        }
        if (first(causes, InvalidAlgorithmParameterException.class).isPresent()) {
            return trustStore() + " holds no CA" + why
                    + "; import one, or set ssl.truststore.password, without which a PKCS12 store seems empty"
                    + SETTINGS;
        }
        if (first(causes, CertificateException.class)
                .filter(e -> String.valueOf(e.getMessage()).matches("No (subject|name).*"))
                .isPresent()) {
            return "the broker's certificate is for another host" + why
                    + "; give the name in the certificate with --bootstrap-servers";
        }
        return causes.stream()
                .map(cause -> ALERT.matcher(String.valueOf(cause.getMessage())))
                .filter(Matcher::find)
                .map(found -> found.group(1))
                .findFirst()
                .map(alert -> alert(alert, why))
                .orElse("the handshake failed" + why);
    }

    private static String alert(String alert, String why) {
        if (alert.contains("certificate") || alert.equals("unknown_ca")) {
            return "the broker does not accept the certificate of this client" + why
                    + "; set ssl.keystore.location to one that its CA has signed" + SETTINGS;
        }
        return alert.equals("protocol_version") || alert.equals("handshake_failure")
                ? "broker and client have no TLS version or cipher in common, or the broker wants a certificate" + why
                        + "; see ssl.enabled.protocols and ssl.keystore.location" + SETTINGS
                : "the broker ended the handshake" + why;
    }

    private String trustStore() {
        String location = setting("ssl.truststore.location");
        return location.isEmpty() ? "Java's own trust store" : "the trust store " + location;
    }

    private String login(AuthenticationException refusal) {
        if (refusal instanceof UnsupportedSaslMechanismException) {
            return "the broker does not take sasl.mechanism=" + setting("sasl.mechanism") + " (" + refusal.getMessage()
                    + "); set one that it takes";
        }
        if (refusal instanceof IllegalSaslStateException) {
            return "the listener takes none (" + refusal.getMessage()
                    + "); set security.protocol to PLAINTEXT or SSL, or give the address of another listener";
        }
        return "the broker refuses user or password (" + refusal.getMessage() + "); correct sasl.jaas.config";
    }

    /** That the listener speaks something else than the client is set to. */
    private Optional<String> contradiction(Listener listener) {
        String protocol = setting("security.protocol");
        boolean wantsTls = protocol.endsWith("SSL");
        String is = ", and security.protocol is " + protocol + "; set it to ";
        if (listener.speaks() == Listener.Speech.TLS && !wantsTls) {
            return Optional.of("the broker at " + listener.address() + " expects TLS" + is
                    + (protocol.startsWith("SASL") ? "SASL_SSL" : "SSL, or SASL_SSL with a login"));
        }
        if (listener.speaks() != Listener.Speech.PLAIN) {
            return Optional.empty();
        }
        boolean takesLogin = !listener.mechanisms().isEmpty();
        if (wantsTls) {
            return Optional.of("the broker at " + listener.address() + " speaks no TLS" + is
                    + (takesLogin ? "SASL_PLAINTEXT" : "PLAINTEXT") + ", or give the address of its TLS listener");
        }
        return takesLogin && !protocol.startsWith("SASL")
                ? Optional.of("the broker at " + listener.address() + " expects a login (" + listener.mechanisms() + ")"
                        + is + "SASL_PLAINTEXT, and add sasl.mechanism and sasl.jaas.config")
                : Optional.empty();
    }

    /** That something listens as it should and still nothing was answered. */
    private String away(Listener listener) {
        String begin = "the cluster at bootstrap_servers=" + brokers + " did not answer within timeout_ms=" + timeoutMs;
        return switch (listener.speaks()) {
            case TLS ->
                begin + ", though " + listener.address() + " takes TLS connections; it may want a login"
                        + " (security.protocol=SASL_SSL), be starting, or advertise an address that cannot be reached from here";
            case PLAIN ->
                begin + ", though a broker listens at " + listener.address()
                        + "; it may be starting, or advertise an address that cannot be reached from here"
                        + " (advertised.listeners)";
            default ->
                begin + ", and what listens at " + listener.address()
                        + " answers as no broker; it may be starting, or correct the address";
        };
    }

    private String setting(String name) {
        try {
            String value = new AdminClientConfig(new HashMap<>(settings)).getString(name);
            return value == null ? "" : value;
        } catch (KafkaException e) {
            return String.valueOf(settings.getOrDefault(name, ""));
        }
    }

    private static List<Throwable> causes(Throwable failure) {
        List<Throwable> causes = new ArrayList<>();
        for (Throwable cause = failure; cause != null && !causes.contains(cause); cause = cause.getCause()) {
            causes.add(cause);
        }
        return causes;
    }

    private static <T> Optional<T> first(List<Throwable> causes, Class<T> type) {
        return causes.stream().filter(type::isInstance).map(type::cast).findFirst();
    }

    /** That of the deepest cause that has one. */
    private static String message(List<Throwable> causes) {
        String message = "";
        for (Throwable cause : causes) {
            message = cause.getMessage() == null ? message : cause.getMessage();
        }
        return message;
    }

    /**
     * What the first of the addresses that takes connections speaks.
     *
     * @param mechanisms accepted for a login; empty without a login, or where it speaks TLS
     */
    record Listener(String address, Speech speaks, List<String> mechanisms) {
        enum Speech {
            /** Nobody takes connections. */
            NOTHING,
            TLS,
            /** Kafka's protocol without TLS. */
            PLAIN,
            /** Something that is neither. */
            OTHER
        }

        private static final int LIMIT_MS = 2_000;
        private static final int MOST_BYTES = 1 << 16;
        /** Content types of the first record that a TLS server sends. */
        private static final int ALERT = 21;

        private static final int HANDSHAKE = 22;
        /** Kafka's request SaslHandshake, version 1, which every listener without TLS answers. */
        private static final int SASL_HANDSHAKE = 17;

        private static final int ID = 1_297_303_634;

        static Listener at(String addresses) {
            for (String each : addresses.split(",")) {
                String host = Utils.getHost(each.strip());
                Integer port = Utils.getPort(each.strip());
                if (host == null || port == null) {
                    continue;
                }
                InetSocketAddress address = new InetSocketAddress(host, port);
                try (Socket socket = connect(address)) {
                    Optional<List<String>> mechanisms = mechanisms(socket);
                    return mechanisms
                            .map(found -> new Listener(each.strip(), Speech.PLAIN, found))
                            .orElseGet(() -> new Listener(
                                    each.strip(), speaksTls(address) ? Speech.TLS : Speech.OTHER, List.of()));
                } catch (IOException e) {
                    // the next one may take connections
                }
            }
            return new Listener(addresses, Speech.NOTHING, List.of());
        }

        private static Socket connect(InetSocketAddress address) throws IOException {
            Socket socket = new Socket();
            try {
                socket.setSoTimeout(LIMIT_MS);
                socket.connect(address, LIMIT_MS);
                return socket;
            } catch (IOException e) {
                socket.close();
                throw e;
            }
        }

        /** SASL mechanisms that the broker accepts; empty if nobody answers as a broker. */
        private static Optional<List<String>> mechanisms(Socket socket) {
            try {
                DataOutputStream out = new DataOutputStream(socket.getOutputStream());
                out.write(ByteBuffer.allocate(16)
                        .putInt(12)
                        .putShort((short) SASL_HANDSHAKE)
                        .putShort((short) 1)
                        .putInt(ID)
                        .putShort((short) -1) // no client id
                        .putShort((short) 0) // no mechanism
                        .array());
                out.flush();
                DataInputStream in = new DataInputStream(socket.getInputStream());
                int size = in.readInt();
                if (size < 10 || size > MOST_BYTES || in.readInt() != ID) {
                    return Optional.empty();
                }
                in.readShort(); // the error: there is no such mechanism
                List<String> mechanisms = new ArrayList<>();
                for (int left = in.readInt(); left > 0; left--) {
                    byte[] name = new byte[in.readUnsignedShort()];
                    in.readFully(name);
                    mechanisms.add(new String(name, StandardCharsets.UTF_8));
                }
                return Optional.of(mechanisms);
            } catch (IOException e) {
                return Optional.empty();
            }
        }

        private static boolean speaksTls(InetSocketAddress address) {
            try (Socket socket = connect(address)) {
                SSLEngine engine = SSLContext.getDefault().createSSLEngine();
                engine.setUseClientMode(true);
                engine.beginHandshake();
                ByteBuffer hello = ByteBuffer.allocate(engine.getSession().getPacketBufferSize());
                engine.wrap(ByteBuffer.allocate(0), hello);
                socket.getOutputStream().write(hello.array(), 0, hello.position());
                socket.getOutputStream().flush();
                int type = socket.getInputStream().read();
                return type == HANDSHAKE || type == ALERT;
            } catch (IOException | GeneralSecurityException e) {
                return false;
            }
        }
    }
}
