package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.advantage.PassAtKAdvantage;
import dev.millrace.corrections.advantage.ValueTracker;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Topr;
import dev.millrace.policy.decoder.DecoderShape;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class MillraceConfigTest {
    private static final DecoderShape DEFAULT_SHAPE = ModelConfig.defaults()
            .shape(MillraceConfig.defaults().task().task().tokenizer().vocabSize());

    private static MillraceConfig bind(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return ConfigBinder.bind(MillraceConfig.defaults(), tree);
    }

    @Test
    void shouldTakeItsOwnDefaults() {
        assertThat(bind()).isEqualTo(MillraceConfig.defaults());
        assertThat(ConfigBinder.bind(MillraceConfig.defaults(), ConfigBinder.unbind(MillraceConfig.defaults())))
                .isEqualTo(MillraceConfig.defaults());
    }

    @Test
    void shouldTakeTheNameOffAsItStands() {
        assertThat(bind("algorithm.kl.kind=off")).isEqualTo(bind("algorithm.kl.kind='off'"));
        assertThat(ConfigBinder.bind(
                        MillraceConfig.defaults(), ConfigTree.parse("algorithm: {kl: {kind: off}}", "a file")))
                .isEqualTo(bind("algorithm.kl.kind='off'"));
    }

    @Test
    void shouldReplayRoutingOnlyWhereThereIsOneToReplay() {
        String[] experts = {
            "model.traits.experts.count=4", "model.traits.experts.per_token=2", "model.traits.experts.width=16"
        };
        assertThatThrownBy(() -> bind("algorithm.routing_replay=generator"))
                .hasMessageContainingAll("algorithm.routing_replay is generator", "the model has no experts");
        assertThatThrownBy(() -> bindAll(experts, "algorithm.routing_replay=generator"))
                .hasMessageContainingAll("weight_update=in_flight", "cache_on_swap=recompute", "multi_version");
        assertThatThrownBy(() -> bindAll(
                        experts,
                        "algorithm.routing_replay=generator",
                        "generator.weight_update=multi_version",
                        "gateway.enabled=true"))
                .hasMessageContainingAll("gateway.enabled is true", "records no routing");
        assertThatThrownBy(() -> bindAll(
                        experts,
                        "algorithm.routing_replay=generator",
                        "generator.weight_update=drain",
                        "engine.kind=vllm",
                        "engine.url=http://localhost:8000",
                        "engine.directory=/weights"))
                .hasMessageContainingAll("engine.kind is another program's", "records no routing");
        assertThatThrownBy(() -> bindAll(experts, "algorithm.routing_replay=learner"))
                .hasMessageContainingAll("minibatches=1 and epochs=1", "routing_replay=none or generator");
        assertThatThrownBy(() -> bindAll(experts, "algorithm.advantage.kind=opob"))
                .hasMessageContainingAll("mixture of experts", "opob", "another advantage");
        assertThat(bindAll(experts, "algorithm.routing_replay=generator", "generator.weight_update=multi_version")
                        .algorithm()
                        .routingReplay())
                .isEqualTo(RoutingReplay.GENERATOR);
        assertThat(bindAll(experts, "algorithm.routing_replay=learner", "algorithm.variant=ppo")
                        .algorithm()
                        .routingReplay())
                .isEqualTo(RoutingReplay.LEARNER);
    }

    private static MillraceConfig bindAll(String[] some, String... others) {
        return bind(Stream.concat(Arrays.stream(some), Arrays.stream(others)).toArray(String[]::new));
    }

    @Test
    void shouldRefuseContradictionsWithBothKeysAndAWayOut() {
        assertThatThrownBy(() -> bind("admission.batch_sequences=128"))
                .hasMessageContainingAll(
                        "admission.batch_sequences is 128", "topology.batch.sequences is 256", "same value");
        assertThatThrownBy(() -> bind("admission.eta=9"))
                .hasMessageContainingAll("admission.eta is 9", "algorithm.staleness.max_versions is 2", "lower eta");
        assertThatThrownBy(() -> bind("algorithm.missing_old_log_probs=interpolate", "algorithm.mode=recorded"))
                .hasMessageContainingAll(
                        "algorithm.mode=recorded", "missing_old_log_probs=interpolate", "choose mode=decoupled");
        assertThatThrownBy(() ->
                        bind("algorithm.missing_old_log_probs=interpolate", "algorithm.rejection.compare=staleness"))
                .hasMessageContainingAll(
                        "algorithm.missing_old_log_probs=interpolate",
                        "rollout_correction",
                        "choose missing_old_log_probs=mask");
        assertThatThrownBy(() -> bind("topology.groups.min_size=9"))
                .hasMessageContainingAll("topology.groups.min_size is 9", "admission.group_size is 8");
        assertThatThrownBy(() -> bind("model.max_positions=8")).hasMessageContaining("model.max_positions is 8");
        assertThatThrownBy(() -> bind("topics.weights_retention_bytes=100000"))
                .hasMessageContaining("topics.weights_retention_bytes must be at least");
        assertThatThrownBy(() -> bind("kafka.bootstrap.servers=a:1")).hasMessageContaining("run.bootstrap_servers");
        assertThatThrownBy(() -> bind("model.heads=3")).hasMessageStartingWith("model.");
        assertThatThrownBy(() -> bind("model.hidden_size=1048576", "model.intermediate_size=1048576"))
                .hasMessageStartingWith("model: model.layers.0.mlp.gate_proj.weight has 1,099,511,627,776 numbers")
                .hasMessageContaining("a matrix may lie in 64");
        assertThatThrownBy(() -> bind("model.max_tensor_elements=63"))
                .hasMessageStartingWith(
                        "model: model.embed_tokens.weight has rows of 64 numbers, and a tensor may have 63");
        assertThatThrownBy(() -> bind("model.max_tensor_elements=0"))
                .hasMessageStartingWith("model.max_tensor_elements must be at least 1");
        assertThat(bind("model.max_tensor_elements=8192").model().shape(16)).isEqualTo(DEFAULT_SHAPE);
        assertThat(bind("model.max_tensor_elements=8191").model().shape(16)).isEqualTo(DEFAULT_SHAPE.within(8191));
        assertThatThrownBy(() -> bind("run.device=tpu")).hasMessageContaining("cuda:0");
    }

    @Test
    void shouldRefuseAdaptersThatCannotBeTrained() {
        String[] begun = {"learner.lora.rank=8", "model.checkpoint=somewhere"};
        assertThat(bind(begun).adapter().orElseThrow().shape().tensors(DEFAULT_SHAPE))
                .hasSize(2 * 7 * 2);
        assertThat(bind(begun).sizedTopics().weightsRetentionBytes())
                .as("version 0 lies first and must stay")
                .isEqualTo(-1);
        assertThatThrownBy(() -> bind("learner.lora.rank=8"))
                .hasMessageContainingAll(
                        "learner.lora.rank is 8", "model.checkpoint is empty", "--model DIR", "learner.lora.rank=0");
        assertThatThrownBy(() -> bind("learner.lora.rank=-1"))
                .hasMessage("learner.lora.rank must be at least 1, or 0 to train all weights: -1");
        assertThatThrownBy(() -> bind("learner.lora.rank=65", "model.checkpoint=somewhere"))
                .hasMessageContainingAll("learner.lora.rank is 65", "64 x 64", "give a smaller rank");
        assertThatThrownBy(() -> bind("learner.lora.alpha=0"))
                .hasMessage("learner.lora.alpha must be finite and above 0: 0.0");
        assertThatThrownBy(() -> bind("learner.lora.target_modules=[q_proj, head]"))
                .hasMessageStartingWith("learner.lora.target_modules names head, which is not a linear layer");
        assertThatThrownBy(() -> bind(begun[0], begun[1], "algorithm.advantage.kind=opob"))
                .hasMessageContainingAll("learner.lora.rank is 8", "algorithm.advantage.kind is opob");
        assertThatThrownBy(() -> bind(begun[0], begun[1], "topics.weights_retention_bytes=1000000000"))
                .hasMessageContainingAll(
                        "topics.weights_retention_bytes is 1000000000", "applies to version 0", "set it to -1");
    }

    @Test
    void shouldRefuseWhatIsScoredForNobodyAndAStageWhoseInputNobodyMakes() {
        assertThatThrownBy(() -> bind("scorer.entropies=true"))
                .hasMessage("scorer.entropies is true, and no stage of the algorithm reads entropies, so they would"
                        + " never be used; leave it out, or choose a stage that reads them");
        assertThatThrownBy(() -> bind("scorer.sum_squared_probs=true"))
                .hasMessageContaining("no stage of the algorithm reads squared probabilities");
        assertThatThrownBy(() -> bind("scorer.top_log_probs=true", "admission.sampling.top_log_probs=4"))
                .hasMessageContaining("no stage of the algorithm reads distributions");
        assertThatThrownBy(() -> bind("topology.join.teacher=true", "scorer.teacher.version=0"))
                .hasMessageContaining("no stage of the algorithm reads teacher log-probs");
        assertThatThrownBy(() -> bind("algorithm.advantage.kind=optimal_token_baseline"))
                .hasMessage("algorithm: stage optimal_token_baseline reads squared probabilities, and"
                        + " scorer.sum_squared_probs is false; set it to true, or leave the stage out");
        assertThatThrownBy(
                        () -> bind("algorithm.advantage.kind=reinforce_plus_plus", "algorithm.advantage.credit=token"))
                .hasMessage(
                        "algorithm: stage reinforce_plus_plus reads rewards per token, and reward.credit is false; set"
                                + " it to true, or leave the stage out");
        assertThatThrownBy(() -> bind("algorithm.advantage.kind=gae"))
                .hasMessage(
                        "algorithm: stage gae reads values, and algorithm.critic is off and topology.join.reward is false;"
                                + " set the former to value_head, or the latter to true and have a partner's reward records"
                                + " bring them in their credit, or leave the stage out");
        assertThat(bind("algorithm.advantage.kind=gae", "algorithm.critic.kind=value_head")
                        .shape()
                        .valueHead())
                .isTrue();
        bind("algorithm.advantage.kind=gae", "topology.join.reward=true");
        bind("algorithm.advantage.kind=optimal_token_baseline", "scorer.sum_squared_probs=true");
        bind(
                "algorithm.advantage.kind=reinforce_plus_plus",
                "algorithm.advantage.credit=token",
                "reward.kind=verified",
                "reward.credit=true");
        bind("admission.sampling.top_log_probs=4"); // recorded for later
    }

    @Test
    void shouldRefuseToTrainWithAPartnerThatNobodyMakesAndToMakeOneThatNobodyWants() {
        assertThatThrownBy(() -> bind("topology.join.reward=true").requireTrainable())
                .hasMessageContainingAll("topology.join.reward is true", "unrewarded", "one by one");
        assertThatThrownBy(() -> bind("topology.join.reference=true").requireTrainable())
                .hasMessageContainingAll(
                        "topology.join.reference is true",
                        "scorer.reference names no policy",
                        "scorer.reference.version");
        assertThatThrownBy(() -> bind("scorer.teacher.directory=/models/a").requireTrainable())
                .hasMessageContainingAll("scorer.teacher names a policy", "topology.join.teacher is false");
        assertThatThrownBy(() -> bind("scorer.teacher.directory=/models/a", "scorer.teacher.version=3"))
                .hasMessageContainingAll("version must not be set with directory='/models/a'");
        assertThatThrownBy(() -> bind("algorithm.kl.kind=in_loss"))
                .hasMessageContainingAll(
                        "reference.kind=recorded", "topology.join.reference is false", "reference.kind=version");
        bind("algorithm.kl.kind=in_loss", "topology.join.reference=true", "scorer.reference.version=0")
                .requireTrainable();
        bind("topology.join.reference=true", "scorer.reference.version=0").requireTrainable();
        bind().requireTrainable();
    }

    @Test
    void shouldRefuseToRemoveTheGroupsThatTheAdvantageIsFor() {
        ConfigLayers layers = new ConfigLayers()
                .set("algorithm.advantage.kind=rl_zvp")
                .set("scorer.entropies=true")
                .set("topology.groups.zero_variance=drop");

        assertThatThrownBy(layers::resolve)
                .isInstanceOf(ConfigException.class)
                .hasMessageContainingAll("rl_zvp", "topology.groups.zero_variance=drop removes them");
        layers.set("topology.groups.zero_variance=keep").resolve();
    }

    @Test
    void shouldTakeLoneRolloutsWhereTheAdvantageComparesThemWithNoSiblings() {
        ConfigLayers lone = new ConfigLayers()
                .set("admission.group_size=1")
                .set("topology.groups.min_size=1")
                .set("algorithm.advantage.kind=grpo");
        assertThatThrownBy(lone::resolve)
                .hasMessage(
                        "topology.groups.min_size is 1 and algorithm.advantage.kind is grpo, which compares a sample"
                                + " with its siblings; set the former to at least 2, or the latter to one that needs none, such as"
                                + " value_tracker or batch_mean");
        lone.set("algorithm.advantage.kind=batch_mean").resolve();
        MillraceConfig spo = lone.set("algorithm.advantage.kind=value_tracker").resolve();
        assertThat(spo.algorithm().advantage()).isEqualTo(ValueTracker.defaults());

        assertThatThrownBy(() -> lone.set("topology.groups.zero_variance=drop").resolve())
                .hasMessageContainingAll(
                        "admission.group_size is 1, so a group has one reward",
                        "topology.groups.zero_variance=drop removes");
        assertThatThrownBy(() -> lone.set("admission.group_size=8")
                        .set("topology.groups.min_size=4")
                        .resolve())
                .hasMessageContainingAll("value_tracker, which learns from groups with equal rewards");
    }

    @Test
    void shouldDistilFromATeacherThatScores() {
        ConfigLayers layers = new ConfigLayers().set("algorithm.advantage.kind=distillation");
        assertThatThrownBy(layers::resolve)
                .hasMessage(
                        "algorithm: stage distillation reads teacher log-probs, and topology.join.teacher is false; set"
                                + " it to true, and scorer.teacher to a policy, or leave the stage out");
        layers.set("topology.join.teacher=true").set("topology.groups.zero_variance=resample");
        assertThatThrownBy(layers::resolve)
                .hasMessageContainingAll(
                        "algorithm.advantage.kind is distillation, which learns from groups with equal rewards",
                        "topology.groups.zero_variance=resample removes them");
        layers.set("topology.groups.zero_variance=keep");
        assertThatThrownBy(() -> layers.resolve().requireTrainable())
                .hasMessageContainingAll("topology.join.teacher is true", "scorer.teacher names no policy");
        layers.set("scorer.teacher.version=0").resolve().requireTrainable();
    }

    @Test
    void shouldRefuseToStartWithAnAdvantageThatNeedsLargerGroupsThanMayCome() {
        ConfigLayers layers = new ConfigLayers().set("algorithm.advantage.kind=pass_at_k");
        assertThat(layers.resolve().algorithm().advantage()).isEqualTo(PassAtKAdvantage.defaults());
        layers.set("algorithm.advantage.k=9");
        assertThatThrownBy(layers::resolve)
                .hasMessage("algorithm.advantage.kind is pass_at_k, which needs groups of at least 9 samples, and"
                        + " admission.group_size is 8; every batch would fail, so lower algorithm.advantage.k or raise"
                        + " the latter");
        layers.set("algorithm.advantage.k=6");
        assertThatThrownBy(layers::resolve)
                .hasMessageContainingAll("at least 6 samples", "topology.groups.min_size is 4", "an incomplete group");
        layers.set("topology.groups.min_size=6");
        assertThat(layers.resolve().topology().groups().minSize()).isEqualTo(6);
    }

    @Test
    void shouldAllowWhatFitsTogether() {
        assertThat(bind("algorithm.objective.kind=ppo_clip").algorithm().objective())
                .isEqualTo(PpoClip.defaults());
        assertThat(bind("run.id=a", "run.bootstrap_servers=b:1").run().topics().prefix())
                .isEqualTo("millrace.a.");
        assertThat(bind("run.id=a").run().topics().prefix()).isEqualTo("millrace.");
    }

    @Test
    void shouldRefuseWeightsBesideALossThatCorrectsByItself() {
        assertThatThrownBy(() -> bind("algorithm.objective.kind=topr"))
                .hasMessageContainingAll(
                        "algorithm.objective.kind=topr", "weights.kind=token", "choose weights.kind=none");
        assertThat(bind("algorithm.objective.kind=topr", "algorithm.weights=none")
                        .algorithm()
                        .objective())
                .isEqualTo(new Topr());
    }

    @Test
    void shouldPutKeysOverTheVariantThatIsNamed() {
        MillraceConfig config = bind("algorithm.variant=gspo", "algorithm.objective.clip_ratio_high=0.01");
        assertThat(config.algorithm())
                .isEqualTo(Algorithm.variant("gspo")
                        .with(a -> a.objective(new Gspo(Anchor.PROXIMAL, 3e-4, 0.01, PpoClip.DEFAULT_CLIP_RATIO_C))));
        assertThat(bind("algorithm=decoupled_geo_rs(0.99_1.01)")
                        .algorithm()
                        .rejection()
                        .rolloutRsThreshold())
                .isEqualTo("0.99_1.01");
        assertThatThrownBy(() -> bind("algorithm=grop"))
                .hasMessageContainingAll("algorithm.variant", "'grop'; did you mean grpo?");
    }

    @Test
    void shouldShowNoSecretAndKeepReferences() {
        MillraceConfig config = bind(
                "kafka.ssl.key.password=hunter2",
                "kafka.ssl.truststore.password=\"${env:TRUST}\"",
                "run.schema_registry_url=\"http://bob:hunter2@registry\"");
        assertThat(config.toString() + ConfigBinder.unbind(config) + ConfigTree.write(ConfigBinder.unbind(config)))
                .doesNotContain("hunter2")
                .contains("[hidden]", "${env:TRUST}", "http://bob:[hidden]@registry");
        assertThat(config.kafka().get("ssl.key.password").written())
                .as("for the client")
                .isEqualTo("hunter2");
        assertThat(config.run().schemaRegistryUrl().written()).isEqualTo("http://bob:hunter2@registry");
    }

    @Test
    void shouldSayNoSecretThatStandsInTheWrongPlace() {
        assertThatThrownBy(() -> bind("kafka=hunter2")).hasMessage("kafka must be keys and values: [hidden]");
        assertThatThrownBy(() -> bind("run.schema_registry_url=[hunter2]"))
                .hasMessage("run.schema_registry_url must be text: [hidden]");
        assertThatThrownBy(() -> bind("kafka.ssl.key.password='hunter2"))
                .hasMessageStartingWith("--set kafka.ssl.key.password=...: the value is not valid YAML")
                .hasMessageNotContaining("hunter2")
                .hasNoCause();
    }

    @Test
    void shouldShowNoPasswordOfAListenersKeyAndRefuseHalfOfItsTls() {
        MillraceConfig config = bind("http.tls.key_store=gateway.p12", "http.tls.password=hunter2");
        assertThat(config.http().tls().password().written()).isEqualTo("hunter2");
        assertThat(config.http().toString()).contains("gateway.p12").doesNotContain("hunter2");
        assertThatThrownBy(() -> bind("http.tls.password=[hunter2]"))
                .hasMessage("http.tls.password must be text: [hidden]");
        assertThatThrownBy(() -> bind("http.tls.certificate=chain.pem"))
                .hasMessageContaining("http.tls")
                .hasMessageContaining("must be given both or neither, and only certificate is: 'chain.pem'");
        assertThatThrownBy(() -> bind("http.tls.key_store=gateway.p12"))
                .hasMessageContaining("password must be given for key_store 'gateway.p12'");
    }

    @Test
    void shouldRefuseAReferenceWhereNobodyFollowsIt() {
        assertThatThrownBy(() -> bind("model.checkpoint=\"${env:CHECKPOINT}\""))
                .hasMessage("model.checkpoint accepts no reference: '${env:CHECKPOINT}'; settings under kafka.,"
                        + " run.schema_registry_url, metrics.otlp and http.tls.password do");
    }

    @Test
    void shouldConnectOnlyWithSecretsThatAreThere() {
        assertThat(bind("kafka.ssl.key.password=hunter2").clientSettings())
                .containsEntry("ssl.key.password", "hunter2");
        assertThatThrownBy(() -> bind("kafka.ssl.key.password=\"[hidden]\"").clientSettings())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith(
                        "kafka.ssl.key.password is [hidden]: a recorded configuration keeps no literal secret");
        assertThatThrownBy(() -> bind("kafka.consumer.ssl.key.password=\"${file:/none:key}\"")
                        .clientSettings())
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith(
                        "kafka.consumer.ssl.key.password refers to ${file:/none:key}, and there is no file /none;");
    }
}
