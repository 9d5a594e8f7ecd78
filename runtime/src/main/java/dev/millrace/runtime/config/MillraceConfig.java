package dev.millrace.runtime.config;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.step.StepObserver;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.CriticConfig;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.gateway.GatewayConfig;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.gateway.engine.EngineConfig;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.Guess;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.environment.remote.RemoteEnvironment;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.SlotTurnEngine;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.generator.staleness.StalenessControllerConfig;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.learner.LearnerConfig;
import dev.millrace.learner.step.LoraConfig;
import dev.millrace.learner.step.LoraStart;
import dev.millrace.log.SecretException;
import dev.millrace.log.SecretSettings;
import dev.millrace.log.SecretText;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.scorer.FixedPolicyConfig;
import dev.millrace.scorer.ScorerConfig;
import dev.millrace.topology.MillraceTopology;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.join.JoinConfig;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.weights.store.ObjectStore;
import java.security.SecureRandom;
import java.time.Clock;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The whole configuration, one component per feature.
 *
 * <p>Constraints across components are checked here, so that a contradiction is refused before anything starts.
 *
 * @param run which run this is and where its log is
 * @param task what is trained
 * @param reward who rewards the responses
 * @param environments extra environments that a generator serves, with the keys of {@code task.environment}, for prompts of other programs
 * @param model the decoder
 * @param admission when prompts are released and what they ask for
 * @param generator sampling
 * @param engine another program's engine, that a generator or gateway of this process samples with
 * @param gateway agents that play the run's samples
 * @param scorer scoring
 * @param algorithm how batches become updates: advantages, corrections, objective, size of the step
 * @param topology from rollouts and scores to batches
 * @param learner from batches to weights
 * @param observers observers of the learner's steps in this process
 * @param weights versions on the log
 * @param topics the run's topics
 * @param broker the broker inside the process
 * @param goal when training is over
 * @param evaluation of the policy on prompts that are held out
 * @param metrics the HTTP port
 * @param http how HTTP listeners are reached
 * @param kafka Kafka client settings, such as {@code security.protocol}; prefix {@code consumer.}, {@code producer.},
 *     {@code admin.} or {@code streams.} for one kind; values may reference secrets, {@code ${env:NAME}} or
 *     {@code ${file:PATH:KEY}}
 */
public record MillraceConfig(
        RunConfig run,
        TaskSettings task,
        RewardFunction reward,
        List<Environment> environments,
        ModelConfig model,
        StalenessControllerConfig admission,
        GeneratorConfig generator,
        EngineConfig engine,
        GatewayConfig gateway,
        ScorerConfig scorer,
        Algorithm algorithm,
        TopologyConfig topology,
        LearnerConfig learner,
        List<StepObserver> observers,
        WeightsConfig weights,
        TopicsConfig topics,
        BrokerConfig broker,
        GoalConfig goal,
        EvaluationConfig evaluation,
        MetricsConfig metrics,
        HttpConfig http,
        Map<String, SecretText> kafka) {

    public MillraceConfig {
        FlowRules.require(admission, topology, algorithm, weights);
        ClientSettings.check(kafka);
        InputSources.require(algorithm, reward, admission.sampling(), scorer, topology.join());
        kafka = Map.copyOf(kafka);
        environments = List.copyOf(environments);
        observers = List.copyOf(observers);
        try {
            Environments.of(task.task(), environments, reward);
        } catch (IllegalArgumentException e) {
            throw new ConfigException("environments: " + e.getMessage(), e);
        }
        TextRun.requireHeldOut(task, evaluation);
        refuseWith(
                "generator",
                () -> generator.requireRoomFor(task.task(), admission.sampling().maxTokens()));
        if (generator.capacityTokens() > model.maxPositions()) {
            throw new ConfigException("generator.capacity_tokens is " + generator.capacityTokens()
                    + " and model.max_positions is " + model.maxPositions()
                    + "; a sequence could outgrow the model, so lower the former or raise the latter");
        }
        refuseWith("generator", () -> engine.require(generator));
        if (gateway.enabled() && !engine.isRemote()) {
            refuseWith("generator", () -> SlotTurnEngine.requireUpdates(generator.weightUpdate()));
            refuseWith("gateway", () -> gateway.prefixBytes(generator.precision()));
        }
        engine.refusal(asked(admission.sampling())).ifPresent(refusal -> {
            throw new ConfigException("admission.sampling." + refusal);
        });
        refuseWith("model", () -> shape(model, task, algorithm));
        DecoderShape shape = shape(model, task, algorithm);
        try {
            shape.tensors();
        } catch (IllegalArgumentException e) {
            throw new ConfigException("model: " + e.getMessage(), e);
        }
        if (learner.lora().rank() > 0) {
            requireAdapters(shape, learner.lora(), model, algorithm, weights, topics);
        }
        requireRouting(shape, algorithm, generator, gateway, engine);
        ModelSizes kept = ModelSizes.of(shape, learner.lora().shape(), weights, algorithm);
        refuseWith("topics", () -> topics.requireRoomFor(kept.weights(), kept.optimizer()));
    }

    /** The decoder that is trained, with a value head if the algorithm has a critic. */
    public DecoderShape shape() {
        return shape(model, task, algorithm);
    }

    private static DecoderShape shape(ModelConfig model, TaskSettings task, Algorithm algorithm) {
        return model.shape(task.task().tokenizer().vocabSize())
                .withValueHead(algorithm.critic() instanceof CriticConfig.ValueHead);
    }

    /** The sampling parameters that a request carries. */
    private static SamplingParameters asked(SamplingConfig sampling) {
        return new SamplingParameters(
                sampling.temperature(),
                sampling.topK(),
                sampling.topP(),
                sampling.maxTokens(),
                sampling.seed(),
                sampling.keepSamplingMask(),
                sampling.topLogProbs(),
                sampling.minP(),
                false);
    }

    /** Settings of the run's topics, with defaults that follow from the model's size. */
    public TopicsConfig sizedTopics() {
        ModelSizes kept = ModelSizes.of(shape(), learner.lora().shape(), weights, algorithm);
        return topics.sizedFor(kept.weights(), kept.optimizer());
    }

    /**
     * Creates the run, or opens it; the caller closes it.
     *
     * @param client settings of the connection
     * @param recorded configuration to record on creation; empty records none
     */
    public RunLog open(Map<String, Object> client, TopicsConfig sized, Optional<String> recorded) {
        RunLog.NewRun created =
                new RunLog.NewRun(run.identity(), topology.join().partnerTopics(run.topics()), recorded);
        return RunLog.open(
                client, run.topics(), created, sized, run.schemaRegistryUrl().written(), Clock.systemUTC());
    }

    /**
     * Every topic of the run as its roles create it, changelogs included, and that of the schemas where no registry keeps them.
     *
     * @param epoch whose changelogs
     */
    public List<TopicSettings> topicSettings(int epoch) {
        TopicsConfig sized = sizedTopics();
        List<TopicSettings> all = new ArrayList<>(TopicAdministration.ofRun(
                sized,
                run.topics(),
                topology.join().partnerTopics(run.topics()),
                run.schemaRegistryUrl().written().isEmpty()));
        all.addAll(MillraceTopology.changelogs(run.topics(), epoch, sized.partitions()));
        return all;
    }

    /** What is trained, and which part of it a version holds. */
    public VersionSize versionSize() {
        return VersionSize.of(shape(), learner.lora().shape());
    }

    /** The adapter that the run's first version is given; empty where the weights themselves are trained. */
    public Optional<LoraStart> adapter() {
        return learner.lora().shape().map(low -> new LoraStart(low, run.seed()));
    }

    /**
     * Client settings of {@code kafka} for a log connection, resolved when connecting: each setting also for every kind
     * of client that knows it, references to secrets as references, and what follows them.
     *
     * @throws ConfigException if a reference cannot be resolved, or this is a copy of a configuration that lacks a
     * secret
     */
    public Map<String, String> clientSettings() {
        try {
            return ClientSettings.expand(SecretSettings.forClients(kafka, "kafka."));
        } catch (SecretException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    /**
     * Refuses what only works where the roles are started one by one: {@code train} has a generator, scorers, a topology
     * and a learner, and no other role.
     */
    public void requireTrainable() {
        FlowRules.requireGroups(admission, topology, algorithm);
        requirePartners();
        if (topology.join().reward()) {
            throw new ConfigException(
                    "topology.join.reward is true, and train writes no reward records, so every rollout would be"
                            + " dropped as unrewarded; set it to false, or start the roles one by one next to the"
                            + " writer of rewards");
        }
        requireScorer("reference", topology.join().reference(), scorer.reference());
        requireScorer("teacher", topology.join().teacher(), scorer.teacher());
    }

    /**
     * Refuses to sample if the task needs an external verifier or environment and this process has no address for it.
     *
     * @throws ConfigException with the way out
     */
    public void requirePartners() {
        refusing(() -> {
            if (reward instanceof RemoteReward remote) {
                remote.requireGiven();
            }
            if (task.task().environment() instanceof RemoteEnvironment remote) {
                remote.requireGiven("task.environment");
            }
            for (int i = 0; i < environments.size(); i++) {
                if (environments.get(i) instanceof RemoteEnvironment remote) {
                    remote.requireGiven("environments[" + i + "]");
                }
            }
        });
    }

    /**
     * Refuses a task whose data cannot be read here, or is not what the run began with.
     *
     * @throws ConfigException saying what is missing or differs
     */
    public void requireData() {
        requireFiles(TextTask::requireDataAsRecorded);
    }

    /**
     * Refuses a task whose tokenizer cannot be read here, or is not what the run began with.
     *
     * @throws ConfigException saying what is missing or differs
     */
    public void requireTokenizer() {
        requireFiles(TextTask::requireTokenizerAsRecorded);
    }

    /**
     * Refuses held-out prompts that cannot be read here, or are not what the run began with.
     *
     * @throws ConfigException saying what is missing or differs
     */
    public void requireHeldOutFiles() {
        requireFiles(TextTask::requireHeldOutAsRecorded);
    }

    private void requireFiles(Consumer<TextTask> check) {
        if (task instanceof TextTask text) {
            refusing(() -> check.accept(text));
        }
    }

    private static void refusing(Runnable check) {
        try {
            check.run();
        } catch (IllegalArgumentException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    private static void requireScorer(String name, boolean joined, FixedPolicyConfig policy) {
        if (joined && !policy.isGiven()) {
            throw new ConfigException("topology.join." + name + " is true and scorer." + name
                    + " names no policy, so every rollout would wait forever for a score; set scorer." + name
                    + ".version or scorer." + name + ".directory");
        }
        if (!joined && policy.isGiven()) {
            throw new ConfigException("scorer." + name + " names a policy and topology.join." + name
                    + " is false, so its scores would never be used; set the latter to true, or leave the"
                    + " former out");
        }
    }

    static void refuseWith(String path, Runnable check) {
        try {
            check.run();
        } catch (IllegalArgumentException e) {
            throw new ConfigException(path + "." + e.getMessage(), e);
        }
    }

    /** The defaults of every part: the task {@code inc} on the embedded broker. */
    public static MillraceConfig defaults() {
        return new MillraceConfig(
                RunConfig.defaults(),
                IncPrompts.defaults(),
                OwnVerdict.defaults(),
                List.of(new FixedAnswer(), new Guess()),
                ModelConfig.defaults(),
                StalenessControllerConfig.defaults(),
                GeneratorConfig.defaults(),
                EngineConfig.defaults(),
                GatewayConfig.defaults(),
                ScorerConfig.defaults(),
                Algorithm.defaults()
                        .with(changed -> changed.staleness(new StalenessRules(
                                StalenessControllerConfig.defaults().eta(), 0, 0))),
                TopologyConfig.defaults(),
                LearnerConfig.defaults(),
                List.of(),
                WeightsConfig.defaults(),
                TopicsConfig.defaults(),
                BrokerConfig.defaults(),
                GoalConfig.defaults(),
                EvaluationConfig.defaults(),
                MetricsConfig.defaults(),
                HttpConfig.defaults(),
                Map.of());
    }

    /** The environments that a generator of the run serves, with what rewards their responses. */
    public Environments served() {
        return Environments.of(task.task(), environments, reward);
    }

    /** The same under a new name, of its task and the time, unless it has one. */
    public MillraceConfig named() {
        if (!run.id().isEmpty()) {
            return this;
        }
        String time = LocalDateTime.now(ZoneId.systemDefault()).format(DateTimeFormatter.ofPattern("yyyyMMdd-HHmmss"));
        // task and time are for people; two of them may start in the same second on one cluster
        return withRunId(
                task.task().name() + "-" + time + "-" + String.format("%04x", new SecureRandom().nextInt(1 << 16)));
    }

    public MillraceConfig withRunId(String id) {
        return with(run.withId(id));
    }

    public MillraceConfig with(RunConfig otherRun) {
        return with(otherRun, task, metrics);
    }

    public MillraceConfig withTask(TaskSettings otherTask) {
        return with(run, otherTask, metrics);
    }

    /** The same whose event files are in this directory, unless the configuration names one. */
    public MillraceConfig withCurves(String directory) {
        return metrics.tensorboard().directory().isEmpty()
                ? with(run, task, metrics.with(new TensorBoardConfig(directory)))
                : this;
    }

    private MillraceConfig with(RunConfig otherRun, TaskSettings otherTask, MetricsConfig otherMetrics) {
        return new MillraceConfig(
                otherRun,
                otherTask,
                reward,
                environments,
                model,
                admission,
                generator,
                engine,
                gateway,
                scorer,
                algorithm,
                topology,
                learner,
                observers,
                weights,
                topics,
                broker,
                goal,
                evaluation,
                otherMetrics,
                http,
                kafka);
    }

    /**
     * Refuses settings that cannot be combined with training an adapter.
     *
     * @throws ConfigException naming both keys, both values and a way out
     */
    private static void requireAdapters(
            DecoderShape shape,
            LoraConfig lora,
            ModelConfig model,
            Algorithm algorithm,
            WeightsConfig weights,
            TopicsConfig topics) {
        if (model.checkpoint().isEmpty()) {
            throw new ConfigException("learner.lora.rank is " + lora.rank()
                    + " and model.checkpoint is empty: adapters cannot train random weights; give a"
                    + " pretrained checkpoint, --model DIR, or train all weights, learner.lora.rank=0");
        }
        refuseWith("learner.lora", () -> lora.shape().orElseThrow().tensors(shape));
        if (algorithm.advantage().optionalInputs().contains(StageInput.GRADIENT_NORMS)) {
            throw new ConfigException("learner.lora.rank is " + lora.rank()
                    + " and algorithm.advantage.kind is opob, whose norms are those of the gradient by all"
                    + " weights; choose another advantage, or train all weights, learner.lora.rank=0");
        }
        if (algorithm.critic() instanceof CriticConfig.ValueHead) {
            throw new ConfigException("learner.lora.rank is " + lora.rank()
                    + " and algorithm.critic is value_head, which an adapter does not contain and would never"
                    + " be trained; train all weights, learner.lora.rank=0, or choose another algorithm.advantage with"
                    + " algorithm.critic=off");
        }
        if (topics.weightsRetentionBytes() > 0
                && ObjectStore.of(weights.store()).isEmpty()) {
            throw new ConfigException("topics.weights_retention_bytes is " + topics.weightsRetentionBytes()
                    + " and learner.lora.rank is " + lora.rank()
                    + ": every adapter applies to version 0, which is first on the topic and would expire first;"
                    + " leave the former at 0, or set it to -1");
        }
    }

    /**
     * Refuses an algorithm whose stages read data that no role produces, and scores that no stage reads. Data that only
     * the record has, such as the reference's log-probs, credit and the generator's top tokens, may be recorded for
     * later.
     */
    static final class InputSources {
        private final Algorithm algorithm;

        private InputSources(Algorithm algorithm) {
            this.algorithm = algorithm;
        }

        /** @throws ConfigException naming the stage and the key that contradict each other */
        static void require(
                Algorithm algorithm,
                RewardFunction reward,
                SamplingConfig sampling,
                ScorerConfig scorer,
                JoinConfig join) {
            InputSources sources = new InputSources(algorithm);
            boolean credit = join.reward() || !(reward instanceof OwnVerdict own) || own.credit();
            sources.requireMade(StageInput.TURN_REWARDS, credit, "reward.credit is false", "set it to true");
            sources.requireMade(StageInput.TOKEN_REWARDS, credit, "reward.credit is false", "set it to true");
            sources.requireMade(
                    StageInput.DISTRIBUTIONS,
                    sampling.topLogProbs() > 0,
                    "admission.sampling.top_log_probs is 0",
                    "set it to how many tokens are compared");
            sources.requireBoth(StageInput.DISTRIBUTIONS, scorer.topLogProbs(), "scorer.top_log_probs", "true");
            sources.requireBoth(StageInput.ENTROPIES, scorer.entropies(), "scorer.entropies", "true");
            sources.requireBoth(
                    StageInput.SQUARED_PROBABILITIES, scorer.sumSquaredProbs(), "scorer.sum_squared_probs", "true");
            sources.requireBoth(
                    StageInput.TEACHER,
                    join.teacher(),
                    "topology.join.teacher",
                    "true, and scorer.teacher to a policy");
            sources.requireMade(
                    StageInput.REFERENCE,
                    join.reference(),
                    "topology.join.reference is false",
                    "set it to true, and scorer.reference to a policy");
            String partners = "true and have a partner's reward records bring them in their credit";
            sources.requireMade(
                    StageInput.VALUES,
                    join.reward() || algorithm.critic() instanceof CriticConfig.ValueHead,
                    "algorithm.critic is off and topology.join.reward is false",
                    "set the former to value_head, or the latter to " + partners);
            sources.requireMade(
                    StageInput.GREEDY_REWARDS, join.reward(), "topology.join.reward is false", "set it to " + partners);
            sources.requireMade(
                    StageInput.FORCED_TOKENS,
                    false,
                    "no role of a run computes them",
                    "apply it to vectors in a file (millrace correct)");
        }

        private boolean reads(StageInput input) {
            return algorithm.inputs().contains(input);
        }

        private void requireBoth(StageInput input, boolean made, String key, String value) {
            if (made && !reads(input)) {
                throw new ConfigException(unread(input, key));
            }
            requireMade(input, made, key + " is false", "set it to " + value);
        }

        private static String unread(StageInput input, String key) {
            return key + " is true, and no stage of the algorithm reads " + input.text()
                    + ", so they would never be used; leave it out, or choose a stage that reads them";
        }

        private void requireMade(StageInput input, boolean made, String why, String wayOut) {
            if (!made && reads(input)) {
                String stage = algorithm.stages().stream()
                        .filter(one -> one.inputs().contains(input))
                        .map(Stage::name)
                        .findFirst()
                        .orElseThrow();
                throw new ConfigException("algorithm: stage " + stage + " reads " + input.text() + ", and " + why + "; "
                        + wayOut + ", or leave the stage out");
            }
        }
    }

    /**
     * Checks the settings that need a mixture of experts, and those that one needs.
     *
     * @throws ConfigException naming the keys that contradict each other
     */
    private static void requireRouting(
            DecoderShape shape,
            Algorithm algorithm,
            GeneratorConfig generator,
            GatewayConfig gateway,
            EngineConfig engine) {
        RoutingReplay replay = algorithm.routingReplay();
        boolean hasExperts = shape.traits().experts().present();
        if (hasExperts && algorithm.advantage().optionalInputs().contains(StageInput.GRADIENT_NORMS)) {
            throw new ConfigException(
                    "the model is a mixture of experts and algorithm.advantage.kind is opob, which needs"
                            + " per-sequence gradient norms, not supported for it; choose another advantage");
        }
        if (replay == RoutingReplay.NONE) {
            return;
        }
        String key = "algorithm.routing_replay is " + replay.name().toLowerCase(Locale.ROOT);
        if (!hasExperts) {
            throw new ConfigException(
                    key + ", and the model has no experts; leave the key out, or give a model with experts");
        }
        if (replay == RoutingReplay.GENERATOR) {
            if (engine.isRemote()) {
                throw new ConfigException(key
                        + " and engine.kind is another program's engine, which records no routing; choose"
                        + " routing_replay=none or learner, or leave engine.kind out");
            }
            if (gateway.enabled()) {
                throw new ConfigException(
                        key + " and gateway.enabled is true, and the gateway records no routing; choose"
                                + " routing_replay=none or learner, or leave the gateway out");
            }
            generator.twoRoutings().ifPresent(why -> {
                throw new ConfigException(key + ": " + why);
            });
        }
    }
}
