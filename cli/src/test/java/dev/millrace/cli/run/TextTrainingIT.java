package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RoleRights;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.ort.CacheFolders;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.Millrace;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.SingleRole;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A checkpoint with a tokenizer of its own, trained on prompts of a file and rewarded by what its text says. */
@Timeout(900)
class TextTrainingIT {
    private static final Path TOKENIZER = Path.of("..", "policy", "src", "test", "resources", "tiny", "tokenizer.json");
    private static final Path STORIES = Path.of("..", "..", "shared", "models", "stories260k");

    @TempDir
    private Path folder;

    @Test
    void shouldTrainACheckpointOnTextAndGoOn() throws Exception {
        Path model = tinyModel();
        Path run = folder.resolve("run");
        Path held = Files.writeString(folder.resolve("held.jsonl"), "{\"prompt\": \"The night\"}\n");
        List<VersionEvaluation> first = train(
                run,
                asked(model)
                        .set("learner.max_steps=2")
                        .set("task.eval.data.file", held.toString())
                        .set("evaluation={every_versions: 2, samples: 3}"));
        assertThat(first).extracting(VersionEvaluation::getVersion).containsExactly(0L, 2L);
        assertThat(first).allSatisfy(evaluation -> {
            assertThat(evaluation.getPrompts())
                    .as("one prompt, and it is no other when it comes again")
                    .singleElement()
                    .satisfies(prompt -> assertThat(prompt.getSamples()).isEqualTo(3));
            assertThat(EvaluationRecords.recomputed(evaluation)).isEqualTo(evaluation);
            assertThat(evaluation.getStartLogProb()).isBetween(-10.0, -1.0);
        });

        List<Rollout> rollouts = rollouts(run);
        Tokenizer tokenizer = new TokenizerDirectory(model.toString()).open();
        assertThat(rollouts).hasSizeGreaterThanOrEqualTo(2 * 16).allSatisfy(rollout -> {
            assertThat(tokenizer.text(PackedInts.toArray(rollout.getPromptTokens())))
                    .isIn("once upon a time", "the dog ran to the park", "hello ?");
            assertThat(rollout.getReward()).isEqualTo(questions(tokenizer, rollout));
            assertThat(rollout.getTokenizerHash()).isEqualTo(tokenizer.hash());
        });

        ObjectNode begun = ConfigTree.read(run.resolve("config.yaml"));
        assertThat(train(run, new ConfigLayers().begunWith(begun).set("learner.max_steps=3")))
                .as("those before, and the last")
                .startsWith(first.toArray(VersionEvaluation[]::new))
                .extracting(VersionEvaluation::getVersion)
                .containsExactly(0L, 2L, 3L);
        assertThat(Files.readAllLines(run.resolve("evaluations.csv"))).hasSize(1 + 3);
        shouldEvaluateByHandAsTheRunDid(run, first.get(1));
        Files.writeString(
                model.resolve("tokenizer.json"), Files.readString(TOKENIZER).replace("\"night\"", "\"evening\""));
        MillraceConfig changed = new ConfigLayers().begunWith(begun).resolve();
        assertThatThrownBy(() -> new Millrace(changed).in(run).run())
                .as("what its tokens mean cannot change once a run has begun")
                .hasMessageContaining("task.tokenizer: ");

        byte[] config = Files.readAllBytes(model.resolve("config.json"));
        remove(model);
        shouldNeedNoFolder(run, config);
    }

    /** The same version, prompts and draws give the same figures. */
    private static void shouldEvaluateByHandAsTheRunDid(Path run, VersionEvaluation recorded) throws Exception {
        JsonNode byHand = new ObjectMapper()
                .readTree(millrace("evaluate", "--run-dir", run.toString(), "--version", "2", "--json"));
        assertThat(byHand.path("weights_sha256").asText()).isEqualTo(recorded.getWeightsSha256());
        assertThat(byHand.path("data_sha256").asText()).isEqualTo(recorded.getDataSha256());
        assertThat(byHand.path("reward").asDouble()).isEqualTo(recorded.getRewardMean());
        assertThat(byHand.path("tokens").asLong()).isEqualTo(EvaluationRecords.tokens(recorded));
        assertThat(byHand.path("start_log_prob").asDouble()).isEqualTo(recorded.getStartLogProb());

        JsonNode all =
                new ObjectMapper().readTree(millrace("evaluate", "--run-dir", run.toString(), "--recorded", "--json"));
        assertThat(all).extracting(each -> each.path("version").asInt()).containsExactly(0, 2, 3);
        assertThat(all.get(1).path("reward").asDouble()).isEqualTo(recorded.getRewardMean());

        String archive = run.resolveSibling("run.archive").toString();
        millrace("export", "--run-dir", run.toString(), "--to", archive);
        assertThat(new ObjectMapper().readTree(millrace("evaluate", "--archive", archive, "--recorded", "--json")))
                .as("as the archive has them")
                .isEqualTo(all);
        JsonNode ofArchive =
                new ObjectMapper().readTree(millrace("evaluate", "--archive", archive, "--version", "2", "--json"));
        assertThat(withoutTime(ofArchive)).as("by the archive's weights").isEqualTo(withoutTime(byHand));
    }

    private static JsonNode withoutTime(JsonNode evaluation) {
        return ((ObjectNode) evaluation.deepCopy()).without("finished_at_ms");
    }

    /** The tokenizer travels with the run, so that cluster and run are all that a process is told. */
    private void shouldNeedNoFolder(Path run, byte[] config) throws Exception {
        StringWriter said = new StringWriter();
        try (EmbeddedBroker broker = EmbeddedBroker.start(run.resolve("broker"))) {
            SingleRole role = new SingleRole(
                    begun -> new ConfigLayers()
                            .begunWith(begun)
                            .set("run.bootstrap_servers", broker.bootstrapServers())
                            .set("run.id=text")
                            .set("run.topic_prefix=millrace."),
                    RoleRights.LEARNER,
                    false,
                    false,
                    new PrintWriter(said));
            role.run(pipeline -> {
                Role generator = pipeline.generator();
                role.stop(); // it has all that it needs
                return generator;
            });
            assertThat(said.toString()).contains("generator of run text on ");
            shouldServeTheNewestStepFromALearnerOfItsOwn(broker.bootstrapServers());
        }
        Path to = folder.resolve("exported");
        assertThat(Main.commandLine()
                        .setOut(new PrintWriter(said))
                        .execute("model", "export", "--run-dir", run.toString(), "--to", to.toString()))
                .as(said.toString())
                .isZero();
        assertThat(to.resolve("tokenizer.json")).hasSameBinaryContentAs(TOKENIZER);
        assertThat(to.resolve("tokenizer_config.json")).exists();
        assertThat(ConfigTree.read(to.resolve("config.json")).get("vocab_size"))
                .isEqualTo(ConfigTree.parse(new String(config, StandardCharsets.UTF_8), "")
                        .get("vocab_size"));
        assertThat(said.toString().replaceAll("\\s+", " "))
                .contains("so config.json, tokenizer and dtype come from the run's log");
    }

    /** It knows the three steps that others made from the log, and makes one of every batch that they left there. */
    private static void shouldServeTheNewestStepFromALearnerOfItsOwn(String bootstrapServers) throws Exception {
        StringWriter said = new StringWriter();
        SingleRole role = new SingleRole(
                begun -> new ConfigLayers()
                        .begunWith(begun)
                        .set("run.bootstrap_servers", bootstrapServers)
                        .set("run.id=text")
                        .set("run.topic_prefix=millrace.")
                        .set("metrics.port=0")
                        .set("learner.max_steps=0"),
                RoleRights.LEARNER,
                false,
                false,
                new PrintWriter(said, true));
        CompletableFuture<Boolean> ended = CompletableFuture.supplyAsync(() -> {
            try {
                return role.run(Pipeline::learner);
            } catch (Exception e) {
                throw new CompletionException(e);
            }
        });
        try {
            String scraped = "";
            while (number(scraped, "millrace_training_global_step{role=\"learner\"}")
                    != 3 + number(scraped, "millrace_learner_steps_total")) {
                assertThat(ended).as("%s", said).isNotDone();
                LockSupport.parkNanos(100_000_000);
                Matcher metrics = Pattern.compile("metrics at (http://\\S+)").matcher(said.toString());
                if (metrics.find()) {
                    scraped = HttpClient.newHttpClient()
                            .send(
                                    HttpRequest.newBuilder(URI.create(metrics.group(1)))
                                            .build(),
                                    HttpResponse.BodyHandlers.ofString())
                            .body();
                }
            }
            assertThat(scraped)
                    .contains("millrace_critic_score_mean{", "jvm_memory_used_bytes")
                    .doesNotContain("millrace_generator_", "millrace_topology_", "millrace_scorer_");
        } finally {
            role.stop();
        }
        assertThat(ended.get(150, TimeUnit.SECONDS)).as("%s", said).isFalse();
    }

    /** A series of a scrape; NaN if it is not there, which equals nothing. */
    private static double number(String scraped, String series) {
        return scraped.lines()
                .filter(line -> line.startsWith(series + " "))
                .mapToDouble(line -> Double.parseDouble(line.substring(series.length() + 1)))
                .findAny()
                .orElse(Double.NaN);
    }

    @AfterEach
    void removeWhatWasCached() throws IOException {
        for (Path root : CacheFolders.roots()) {
            if (Files.isDirectory(root)) {
                try (Stream<Path> cached = Files.list(root)) {
                    for (Path each : cached.toList()) {
                        Path generation = each.resolve("generation_config.json");
                        if (Files.exists(generation)
                                && Files.readString(generation).contains(folder.toString())) {
                            remove(each);
                        }
                    }
                }
            }
        }
    }

    private static void remove(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(directory);
    }

    @Test
    void shouldRefuseWhatIsMissingBeforeAnythingStarts() throws IOException {
        Path model = tinyModel();
        assertThatThrownBy(() -> new ConfigLayers()
                        .set("model.checkpoint", model.toString())
                        .set("data.file", prompts().toString())
                        .resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("reward is verified, and the task text has no verifier");
        assertThatThrownBy(() -> asked(model).set("data.file=none.jsonl").resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessage("task.data: there is no file none.jsonl");
        assertThatThrownBy(() -> asked(model).set("task.kind=sort").resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("data is given and task.kind is sort, which makes its own prompts");
        assertThatThrownBy(() -> asked(model).set("task.response_tokens=58").resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining(
                        "line 2: the prompt has 7 tokens, and a response (task.response_tokens) leaves the model room for 6");
        assertThatThrownBy(() -> new ConfigLayers()
                        .set("data.file", prompts().toString())
                        .set("reward.kind=exact")
                        .resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("text prompts need a model with a tokenizer");
        assertThatThrownBy(() ->
                        new ConfigLayers().set("task.eval.data.file=a.jsonl").resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessage("held-out prompts are given without training prompts; give these too: --data FILE");
        assertThatThrownBy(() -> asked(model).set("evaluation.every_versions=5").resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("evaluation.every_versions is 5 without held-out prompts");
        assertThatThrownBy(() -> asked(model)
                        .set("task.eval.share=0.3")
                        .set("evaluation.every_versions=0")
                        .resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("evaluation.every_versions is 0 and 1 prompts are held out");
        assertThatThrownBy(
                        () -> asked(model).set("task.eval.data.file=none.jsonl").resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessage("task.eval.data: there is no file none.jsonl");
        Files.delete(model.resolve("tokenizer.json"));
        assertThatThrownBy(() -> asked(model).resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("task.tokenizer: " + model + " holds no tokenizer.json");
    }

    @Test
    void shouldChooseDefaultsByWhatTheRunBeginsWith() throws IOException {
        MillraceConfig config = asked(tinyModel()).resolve();
        assertThat(config.learner().step().optimizer().learningRate()).isEqualTo(3e-4);
        assertThat(config.algorithm().entropy().bonus()).isZero();
        assertThat(config.algorithm().kl().against()).isPresent();
        assertThat(config.generator().capacityTokens()).isEqualTo(7 + 8);
        MillraceConfig named = asked(tinyModel())
                .set("algorithm=grpo")
                .set("learner.step.optimizer.learning_rate=1e-3")
                .resolve();
        assertThat(asked(tinyModel())
                        .set("task.eval.share=0.5")
                        .resolve()
                        .evaluation()
                        .everyVersions())
                .as("prompts that are held out are looked at")
                .isEqualTo(10);
        assertThat(named.learner().step().optimizer().learningRate()).isEqualTo(1e-3);
        assertThat(named.algorithm().kl().against())
                .as("a named algorithm does not change")
                .isEmpty();
    }

    /** The two examples as they stand in the tree, one playing and one rewarding, each on its input and output. */
    @Test
    void shouldTrainOnWhatAnEnvironmentAndAVerifierInPythonSay() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/python3")), "there is no /usr/bin/python3 here");
        Path examples = Path.of("..", "infra", "examples").toAbsolutePath().normalize();
        Path model = tinyModel();
        Path run = folder.resolve("played");
        train(
                run,
                new ConfigLayers()
                        .set("model.checkpoint", model.toString())
                        .set("run.id=text")
                        .set("admission.batch_sequences=16")
                        .set("topology.batch.sequences=16")
                        .set(
                                "data.file",
                                examples.resolve("environment/numbers.jsonl").toString())
                        .set("task.environment.kind=remote")
                        .set("task.environment.command", "/usr/bin/python3 " + examples.resolve("environment/guess.py"))
                        .set("task.environment.concurrency=2")
                        .set("task.environment.frame", "there was {text}")
                        .set("reward={kind: remote, concurrency: 1}")
                        .set("reward.command", "/usr/bin/python3 " + examples.resolve("verifier/verify.py"))
                        .set("task.response_tokens=48")
                        .set("learner.max_steps=1"));
        List<Rollout> rollouts = rollouts(run);
        assertThat(rollouts).hasSizeGreaterThanOrEqualTo(16).allSatisfy(rollout -> {
            assertThat(rollout.getError()).isNull();
            assertThat(rollout.getEnvironment()).isEqualTo("remote");
            assertThat(rollout.getReward()).isZero(); // a random policy does not add one to digits
            assertThat(rollout.getRewardComponents()).containsOnlyKeys("right");
        });
        // the tiny vocabulary has few of these words
        Tokenizer tokenizer = new TokenizerDirectory(model.toString()).open();
        List<Rollout> answered = rollouts.stream()
                .filter(rollout -> rollout.getTurns().size() > 1)
                .toList();
        assertThat(answered).as("some have ended a turn").isNotEmpty().allSatisfy(rollout -> {
            Turn said = rollout.getTurns().get(1);
            assertThat(said.getSpeaker()).isEqualTo(Speaker.ENVIRONMENT);
            int[] tokens = PackedInts.toArray(rollout.getResponseTokens());
            assertThat(tokenizer.text(Arrays.copyOfRange(tokens, said.getStart(), said.getEnd())))
                    .startsWith("there was");
        });
        assertThat(ConfigTree.read(run.resolve("config.yaml"))
                        .at("/reward/command")
                        .asText())
                .as("the run's folder has it, to go on")
                .contains("verify.py");
    }

    /** The generator is another engine, whose routers choose other experts now and then; scorer and learner go through those. */
    @Test
    void shouldLearnThroughTheExpertsThatTheGeneratorsTokensWentThrough() throws Exception {
        Path model = tinyModel(new DecoderShape(40, 32, 2, 4, 2, 8, 48, 64, 10_000, 1e-5, true, false)
                .with(new DecoderTraits(
                        new RopeScaling.None(), false, false, true, 0, 0, new Experts(32, 3, 8, true))));
        Path run = folder.resolve("experts");
        StepRow step = new Millrace(asked(model)
                        .set("algorithm.routing_replay=generator")
                        .set("generator.weight_update=multi_version")
                        .set("generator.precision=int8")
                        .set("weights.dtype=f32")
                        .set("learner.max_steps=1")
                        .resolve())
                .in(run)
                .run()
                .summary()
                .steps()
                .get(0);
        Map<String, BatchEntry> entries;
        List<Trajectory> learntFrom;
        try (LoggedRun logged = LoggedRun.in(run, "text")) {
            entries = logged.records(logged.topics().batches(), LearnerBatch.class).stream()
                    .filter(batch -> batch.getBatchId() == 0)
                    .flatMap(batch -> batch.getEntries().stream())
                    .collect(Collectors.toMap(BatchEntry::getRolloutId, Function.identity()));
            learntFrom = logged.records(logged.topics().trajectories(), Trajectory.class).stream()
                    .filter(trajectory -> entries.containsKey(trajectory.getRolloutId()))
                    .toList();
        }
        assertThat(entries).hasSize(16);
        assertThat(learntFrom)
                .hasSize(16)
                .allSatisfy(trajectory -> assertThat(trajectory.getVersionSpans())
                        .singleElement()
                        .extracting(VersionSpan::getVersion)
                        .isEqualTo(0L));
        Weights weights = new CheckpointDirectory(model).load();
        int otherExperts = 0;
        double away = 0;
        double replayed = 0;
        double own = 0;
        int tokens = 0;
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), weights.shape(), 1024)) {
            for (Trajectory trajectory : learntFrom) {
                int[] prompt = PackedInts.toArray(trajectory.getPromptTokens());
                int[] response = PackedInts.toArray(trajectory.getResponseTokens());
                int[] all = Arrays.copyOf(prompt, prompt.length + response.length);
                System.arraycopy(response, 0, all, prompt.length, response.length);
                SequenceBatch one = new SequenceBatch(new int[][] {all}, new int[] {prompt.length});
                float[] temperature = {(float) trajectory.getTemperature()};
                RecordedRouting record = Objects.requireNonNull(trajectory.getRouting());
                RoutedExperts recorded = RoutedExperts.of(
                        record.getLayers(), record.getExpertsPerToken(), record.getExperts(), record.getWeights());
                ScoringSession.Routed through =
                        scoring.scoreRouted(weights, one.routed(new RoutedExperts[] {recorded}), temperature);
                ScoringSession.Routed alone = scoring.scoreRouted(weights, one, temperature);
                for (int token = 0; token < recorded.tokens(); token++) {
                    for (int layer = 0; layer < recorded.layers(); layer++) {
                        if (recorded.isNoted(token, layer)) {
                            assertThat(experts(through.routing()[0], token, layer))
                                    .isEqualTo(experts(recorded, token, layer));
                            otherExperts +=
                                    experts(alone.routing()[0], token, layer).equals(experts(recorded, token, layer))
                                            ? 0
                                            : 1;
                        }
                    }
                }
                float[] behavior = PackedFloats.toArray(trajectory.getBehaviorLogProbs());
                float[] old = PackedFloats.toArray(Objects.requireNonNull(trajectory.getOldLogProbs()));
                BatchEntry entry = Objects.requireNonNull(entries.get(trajectory.getRolloutId()));
                ByteBuffer mask = entry.getMask() == null ? trajectory.getMask() : entry.getMask();
                for (int t = 0; t < old.length; t++) {
                    assertThat(old[t]).isCloseTo(through.scores().logProbs()[t], within(1e-5f));
                    away = Math.max(away, Math.abs(old[t] - alone.scores().logProbs()[t]));
                    if (PackedMask.get(mask, t) == 1) {
                        tokens++;
                        replayed += behavior[t] - through.scores().logProbs()[t];
                        own += behavior[t] - alone.scores().logProbs()[t];
                    }
                }
            }
        }
        assertThat(otherExperts)
                .as("choices that the scorer's router makes otherwise")
                .isPositive();
        assertThat(away).as("nats that a token would be away without").isGreaterThan(1e-3);
        assertThat(step.kl()).as("behavior less current, in the mean").isCloseTo(replayed / tokens, within(1e-5));
        assertThat(Math.abs(step.kl() - own / tokens)).as("without").isGreaterThan(3e-5);
    }

    private static Set<Byte> experts(RoutedExperts routing, int token, int layer) {
        Set<Byte> experts = new HashSet<>();
        for (int i = 0; i < routing.perToken(); i++) {
            experts.add(routing.ids()[routing.at(token, layer) + i]);
        }
        return experts;
    }

    @Test
    void shouldTrainARealLanguageModel() throws Exception {
        assumeTrue(Files.isDirectory(STORIES), () -> "there is no " + STORIES + " here");
        Path run = folder.resolve("stories");
        ConfigLayers asked = asked(STORIES.toAbsolutePath().normalize());
        assertThatThrownBy(asked::resolve)
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("line 3: this tokenizer has no chat template, so messages cannot be rendered");
        train(
                run,
                asked.set(
                                "data.file",
                                lines("{\"prompt\": \"Once upon a time\"}").toString())
                        .set("task.response_tokens=24")
                        .set("learner.max_steps=1"));
        Tokenizer tokenizer = new TokenizerDirectory(STORIES.toString()).open();
        assertThat(rollouts(run))
                .allSatisfy(rollout -> assertThat(rollout.getReward()).isEqualTo(questions(tokenizer, rollout)));
    }

    /** By the defaults; B begins at zero, so all that is learnt is the adapter's. */
    @Test
    @Tag("faults")
    void shouldRaiseTheRewardOfARealLanguageModelByAnAdapterAlone() throws Exception {
        assumeTrue(Files.isDirectory(STORIES), () -> "there is no " + STORIES + " here");
        ConfigLayers asked = asked(STORIES.toAbsolutePath().normalize())
                .set("data.file", lines("{\"prompt\": \"Once upon a time\"}").toString())
                .set("task.response_tokens=64")
                .set("learner.lora.rank=8")
                .set("learner.max_steps=80")
                .set("goal={mean_reward: 0.9, over_steps: 3}");
        List<Double> rewards = new Millrace(asked.resolve())
                .in(folder.resolve("adapters")).run().summary().steps().stream()
                        .map(StepRow::reward)
                        .toList();
        assertThat(rewards.get(0)).isLessThan(0.3);
        assertThat(rewards.get(rewards.size() - 1)).isGreaterThan(0.8);
        String run = folder.resolve("adapters").toString();
        assertThat(millrace("replay", "--run-dir", run, "--retrain", "--from-version", "0"))
                .contains("reproduce the weights of all " + rewards.size() + " versions bit for bit");
        assertThat(millrace("model", "export", "--run-dir", run, "--adapter", "--version", "0", "--to", run + "/none"))
                .contains("version 0 is the base of the run's adapters, not an adapter");
        String archive = run + ".archive";
        assertThat(millrace("export", "--run-dir", run, "--to", archive, "--from-version", "4", "--to-version", "7"))
                .contains("weights of versions ");
        assertThat(millrace("replay", "--archive", archive, "--rescore", "own"))
                .as("the adapters' base is in it, however far back")
                .contains("rescored own");
        assertThat(millrace("rollback", "--run-dir", run, "--to-version", "5"))
                .contains("epoch 1 begins with version 5 of epoch 0");
        assertThat(new Millrace(new ConfigLayers()
                                .begunWith(ConfigTree.read(folder.resolve("adapters/config.yaml")))
                                .set("learner.max_steps=7")
                                .resolve())
                        .in(folder.resolve("adapters"))
                        .run()
                        .summary()
                        .invocation()
                        .newSteps())
                .isEqualTo(2);
        assertThat(millrace("replay", "--run-dir", run, "--retrain", "--from-version", "5"))
                .contains("reproduce the weights of all 2 versions bit for bit");
    }

    private static String millrace(String... arguments) {
        StringWriter said = new StringWriter();
        Main.commandLine()
                .setOut(new PrintWriter(said))
                .setErr(new PrintWriter(said))
                .execute(arguments);
        return said.toString().replaceAll("\\s+", " ");
    }

    private static double questions(Tokenizer tokenizer, Rollout rollout) {
        long found = tokenizer
                .text(PackedInts.toArray(rollout.getResponseTokens()))
                .chars()
                .filter(c -> c == '?')
                .count();
        return Math.min(1.0, found / 2.0);
    }

    private static List<VersionEvaluation> train(Path run, ConfigLayers asked) throws Exception {
        return new Millrace(asked.resolve())
                .in(run)
                .run()
                .summary()
                .evaluations()
                .onSamePrompts();
    }

    private static List<Rollout> rollouts(Path run) {
        String id = ConfigTree.read(run.resolve("config.yaml")).at("/run/id").asText();
        try (LoggedRun logged = LoggedRun.in(run, id)) {
            return logged.records(logged.topics().rollouts(), Rollout.class);
        }
    }

    private ConfigLayers asked(Path model) throws IOException {
        return new ConfigLayers()
                .set("model.checkpoint", model.toString())
                .set("data.file", prompts().toString())
                .set("reward.kind=regex")
                .set("reward.pattern", "\\?")
                .set("reward.count=2")
                .set("task.response_tokens=8")
                .set("run.id=text")
                .set("admission.batch_sequences=16")
                .set("topology.batch.sequences=16");
    }

    private Path prompts() throws IOException {
        return Files.writeString(
                folder.resolve("prompts.jsonl"),
                "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"The dog ran to the park\", \"answer\": 3}\n"
                        + "{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}\n");
    }

    private Path lines(String text) throws IOException {
        return Files.writeString(folder.resolve("lines.jsonl"), text + "\n");
    }

    private Path tinyModel() throws IOException {
        return tinyModel(new DecoderShape(40, 32, 2, 4, 2, 8, 48, 64, 10_000, 1e-5, true, false));
    }

    private Path tinyModel(DecoderShape shape) throws IOException {
        Path model = folder.resolve("model");
        new CheckpointDirectory(model).save(Weights.random(shape, 5));
        Files.write(model.resolve("tokenizer.json"), Files.readAllBytes(TOKENIZER));
        Files.writeString(
                model.resolve("tokenizer_config.json"),
                "{\"bos_token\": \"<s>\", \"chat_template\": \"{{ bos_token }} {{ messages[0].content }} ?\"}");
        Files.writeString(
                model.resolve("generation_config.json"),
                "{\"eos_token_id\": [1, 20], \"made_in\": \"" + folder + "\"}"); // no cache has it
        return model;
    }
}
