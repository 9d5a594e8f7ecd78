package dev.millrace.gateway;

import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.gateway.HttpListener.HttpToken;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.PromptCheck;
import dev.millrace.generator.sampling.RoleContext;
import dev.millrace.generator.sampling.SlotTurnEngine;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import java.time.Clock;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets external agents play the run's samples over the OpenAI API.
 *
 * <p>Takes prompts in the same group as a {@link dev.millrace.generator.sampling.Generator}, so each prompt is played
 * or sampled once.
 *
 * <p>Meters: {@code millrace.gateway.open.sessions}, {@code .free.samples}, {@code .sessions} by event, {@code
 * .turns}, {@code .branches}, {@code .rollouts}, {@code .call.seconds}, {@code .engine.seconds}, {@code
 * .acknowledge.seconds} and {@code .refused.calls} by reason, and a generator's engine meters.
 */
public final class Gateway implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Gateway.class);

    private final LogConnection connection;
    private final PolicyFeed feed;
    private final Environments environments;
    private final Tokenizer tokenizer;
    private final GeneratorConfig generator;
    private final GatewayConfig config;
    private final TurnEngine.Factory factory;
    private final Clock clock;
    private final Pulse pulse;
    private final SessionTable sessions;
    private final SessionLog log;
    private final SessionFence fence;
    private final EndWriter writer;
    private final GatewayMeters counts;
    private final HttpToken token;
    private final Optional<SSLContext> tls;
    private volatile boolean stopped;
    private volatile Consumer<String> told = url -> {};
    private volatile @Nullable String url;

    /**
     * With the policy's own engine.
     *
     * @param environments that requests may name
     * @throws IllegalArgumentException if the configuration is impossible for sessions, or a token or certificate is
     *     missing
     */
    public Gateway(
            RoleContext context,
            Environments environments,
            Tokenizer tokenizer,
            Engine engine,
            GeneratorConfig generator,
            GatewayConfig config,
            HttpTls tls) {
        this(
                context,
                environments,
                tokenizer,
                SlotTurnEngine.factory(
                        engine,
                        tokenizer,
                        generator,
                        prefixBytes(config, generator),
                        context.meters(),
                        context.clock()),
                generator,
                config,
                tls);
    }

    private static long prefixBytes(GatewayConfig config, GeneratorConfig generator) {
        long bytes = config.prefixBytes(generator.precision());
        if (bytes == 0 && config.prefixCacheMb() < 0) {
            LOG.info(
                    "no prefix cache between turns, since generator.precision is {}; each turn prefills its whole prompt",
                    generator.precision().name().toLowerCase(Locale.ROOT));
        }
        return bytes;
    }

    public Gateway(
            RoleContext context,
            Environments environments,
            Tokenizer tokenizer,
            TurnEngine.Factory factory,
            GeneratorConfig generator,
            GatewayConfig config,
            HttpTls tls) {
        this.connection = context.connection();
        this.feed = context.feed();
        this.environments = environments;
        this.tokenizer = tokenizer;
        this.factory = factory;
        this.generator = generator;
        this.config = config;
        this.clock = context.clock();
        this.pulse = connection.alarms().begin("gateway");
        this.token = HttpToken.of("gateway.token_variable", config.tokenVariable(), System.getenv());
        this.tls = HttpListener.context(tls, clock);
        this.sessions = new SessionTable(config.sessions());
        this.log = new SessionLog(connection, generator.id());
        this.fence = new SessionFence(sessions, log);
        this.writer = new EndWriter(connection, generator, log, clock);
        this.counts = new GatewayMeters(context.meters(), sessions);
    }

    /**
     * Serves agents until {@link #stop()}. Open sessions stay open on the log for a successor.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalArgumentException if the port cannot be opened
     * @throws dev.millrace.log.transaction.TakenOverException if another process has taken this one's id
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
                generator.capacityTokens(),
                sampling -> Optional.empty(),
                "the gateway records no routing");
        ToolFormat tools = ToolFormat.of(tokenizer);
        Quarantines quarantines = Quarantines.of(connection);
        quarantines.open();
        try (quarantines;
                NewestWeights weights = new NewestWeights(
                        feed,
                        connection.limit(generator.firstVersionTimeoutMs()),
                        factory::prepare,
                        connection.sync());
                TurnEngine engine = factory.open(weights, shape);
                GatewayLoop loop =
                        new GatewayLoop(connection, generator, context(engine, tools), writer, check, quarantines);
                GatewayServer server = server(engine, tools, loop)) {
            server.start();
            url = server.url();
            told.accept(server.url());
            LOG.info("gateway {} listens at {}; tool-call format {}", generator.id(), server.url(), tools);
            loop.run(() -> {
                feed.turned(pulse, engine.version());
                return stopped;
            });
        }
    }

    private SessionContext context(TurnEngine engine, ToolFormat tools) {
        return new SessionContext(config, fence, engine, tokenizer, tools, counts, clock);
    }

    private GatewayServer server(TurnEngine engine, ToolFormat tools, GatewayLoop loop) {
        SessionContext context = context(engine, tools);
        SessionDesk desk = new SessionDesk(connection.run(), generator.id(), context, new TurnPlayer(context), loop);
        return new GatewayServer(config, token, tls, desk, counts, new CallBodies(config), new AnswerWrites());
    }

    public void whenListening(Consumer<String> other) {
        told = other;
    }

    /** Empty before it listens. */
    public Optional<String> url() {
        return Optional.ofNullable(url);
    }

    /** Thread-safe; returns at once. */
    public void stop() {
        stopped = true;
    }

    @Override
    public void close() {
        writer.close();
        log.close();
    }
}
