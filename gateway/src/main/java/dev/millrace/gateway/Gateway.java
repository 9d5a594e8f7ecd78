package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.PromptCheck;
import dev.millrace.generator.sampling.SlotTurnEngine;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.SecretSettings;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.MeterRegistry;
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
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that lets agents play the run's samples: a generator whose environment is a program of somebody else, which speaks the
 * OpenAI API.
 *
 * <p>It takes its prompts as a {@link dev.millrace.generator.sampling.Generator} does and in the same group, so each prompt is
 * played here or sampled there, never both.
 *
 * <p>Meters: {@code millrace.gateway.open.sessions}, {@code .free.samples}, {@code .sessions} by event, {@code .turns}, {@code
 * .branches}, {@code .rollouts}, {@code .call.seconds}, {@code .engine.seconds}, {@code .acknowledge.seconds} and {@code
 * .refused.calls} by reason, beside those of the engine, which are a generator's.
 */
public final class Gateway implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Gateway.class);

    private final LogConnection connection;
    private final PolicyFeed feed;
    private final Environments environments;
    private final Tokenizer tokenizer;
    private final GeneratorConfig generator;
    private final GatewayConfig config;
    private final TurnEngine.Door door;
    private final Clock clock;
    private final Pulse pulse;
    private final SessionTable sessions;
    private final SessionLog log;
    private final SessionFence fence;
    private final EndWriter writer;
    private final GatewayMeters counts;
    private final GatewayToken token;
    private final Optional<SSLContext> tls;
    private volatile boolean stopped;
    private volatile Consumer<String> told = url -> {};
    private volatile @Nullable String url;

    /**
     * Of the policy's own engine.
     *
     * @param feed stays the caller's; it must outlive {@link #run()}
     * @param environments that requests may name
     * @param tokenizer the vocabulary of all prompts and answers, with the chat template
     * @throws IllegalArgumentException if the configuration asks for what sessions cannot have, or names a token or certificate that is not there
     */
    public Gateway(
            LogConnection connection,
            PolicyFeed feed,
            Environments environments,
            Tokenizer tokenizer,
            Engine engine,
            GeneratorConfig generator,
            GatewayConfig config,
            MeterRegistry meters,
            Clock clock) {
        this(
                connection,
                feed,
                environments,
                tokenizer,
                SlotTurnEngine.door(engine, tokenizer, generator, prefixBytes(config, generator), meters, clock),
                generator,
                config,
                meters,
                clock);
    }

    private static long prefixBytes(GatewayConfig config, GeneratorConfig generator) {
        long bytes = config.prefixBytes(generator.precision());
        if (bytes == 0 && config.prefixCacheMb() < 0) {
            LOG.info(
                    "nothing is kept of conversations between their turns, since generator.precision is {}; each turn takes in its"
                            + " whole prompt",
                    generator.precision().name().toLowerCase(Locale.ROOT));
        }
        return bytes;
    }

    /** Of another engine. */
    public Gateway(
            LogConnection connection,
            PolicyFeed feed,
            Environments environments,
            Tokenizer tokenizer,
            TurnEngine.Door door,
            GeneratorConfig generator,
            GatewayConfig config,
            MeterRegistry meters,
            Clock clock) {
        this.connection = connection;
        this.feed = feed;
        this.environments = environments;
        this.tokenizer = tokenizer;
        this.door = door;
        this.generator = generator;
        this.config = config;
        this.clock = clock;
        this.pulse = connection.alarms().begin("gateway");
        this.token = GatewayToken.of(config);
        this.tls =
                config.tls().isOn() ? Optional.of(GatewayCertificate.context(config.tls(), clock)) : Optional.empty();
        this.sessions = new SessionTable(config.sessions());
        this.log = new SessionLog(connection, generator.id());
        this.fence = new SessionFence(sessions, log);
        this.writer = new EndWriter(connection, generator, log, clock);
        this.counts = new GatewayMeters(meters, sessions);
    }

    /**
     * Answers agents until {@link #stop()}. Sessions that are open then stay open on the log, for whoever comes next.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalArgumentException if the port cannot be opened
     * @throws dev.millrace.log.transaction.TakenOverException if another gateway or generator has taken this one's id
     */
    public void run() {
        Optional<PolicyVersion> first =
                feed.awaitFirst(connection.limit(generator.firstVersionTimeoutMs()), () -> stopped);
        pulse.turn();
        if (first.isEmpty() || !writer.takeOver(() -> stopped)) {
            return;
        }
        pulse.turn();
        DecoderShape shape = PolicyFeed.shapeOf(first.get());
        PromptCheck check = new PromptCheck(
                connection,
                environments,
                first.get().getTokenizerHash(),
                shape.vocabSize(),
                generator.capacityTokens());
        ToolFormat tools = ToolFormat.of(tokenizer);
        Quarantines quarantines = Quarantines.of(connection);
        quarantines.open();
        try (quarantines;
                NewestWeights weights = new NewestWeights(
                        feed, connection.limit(generator.firstVersionTimeoutMs()), door::prepare, connection.sync());
                TurnEngine engine = door.open(weights, shape);
                GatewayLoop loop = new GatewayLoop(
                        connection,
                        generator,
                        config,
                        sessions,
                        log,
                        fence,
                        writer,
                        engine,
                        tokenizer,
                        tools,
                        check,
                        quarantines,
                        counts,
                        clock);
                GatewayServer server = server(engine, tools, loop)) {
            server.start();
            url = server.url();
            told.accept(server.url());
            LOG.info("gateway {} listens at {}; tool calls are written as {}", generator.id(), server.url(), tools);
            loop.run(() -> {
                feed.turned(pulse, engine.version());
                return stopped;
            });
        }
    }

    private GatewayServer server(TurnEngine engine, ToolFormat tools, GatewayLoop loop) {
        TurnPlayer player = new TurnPlayer(engine, log, tokenizer, tools, config, fence, counts, clock);
        SessionDesk desk = new SessionDesk(
                connection.run(),
                generator.id(),
                config,
                sessions,
                log,
                fence,
                player,
                engine,
                tokenizer,
                tools,
                loop,
                counts,
                clock);
        return new GatewayServer(config, token, tls, desk, counts, new CallBodies(config), new AnswerWrites());
    }

    /** Tells somebody where agents reach it, once it listens. */
    public void whenListening(Consumer<String> other) {
        told = other;
    }

    /** Where agents reach it; empty before it listens. */
    public Optional<String> url() {
        return Optional.ofNullable(url);
    }

    /** Makes {@link #run()} finish. Thread-safe; returns at once. */
    public void stop() {
        stopped = true;
    }

    /** Call after {@link #run()} has returned. */
    @Override
    public void close() {
        writer.close();
        log.close();
    }

    /** Reads what a gateway's listener shows to its callers, as Kafka's clients read theirs, and refuses what no caller would take. */
    static final class GatewayCertificate {
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
}
