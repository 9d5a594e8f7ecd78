package dev.millrace.workloads.closed;

import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.workloads.closed.EngineRates.LogProbGap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The same weights in two engines: sequences that one of some precision draws, and what the scorer's says of them. What is left of
 * the gap between behavior and old log-probs when nothing is stale.
 */
public final class MismatchTrial {
    private final Engine engine;
    private final Weights weights;
    private final EnginePlan plan;

    /** @param weights not written meanwhile */
    public MismatchTrial(Engine engine, Weights weights, EnginePlan plan) {
        this.engine = engine;
        this.weights = weights;
        this.plan = plan;
    }

    /** Through which experts the tokens go while the scorer's engine reads them. */
    public enum Routing {
        /** The model has none. */
        DENSE,
        /** Those that the scorer's router chooses. */
        OWN,
        /** Those that the generator's router chose. */
        REPLAYED
    }

    /**
     * One precision, scored in one way.
     *
     * @param tokens that were drawn and compared, of all rounds
     * @param sampledRate tokens drawn in a second
     * @param otherExperts share of the choices, one for each token and layer, in which the two engines' routers differ; 0 without experts
     */
    public record Mismatch(
            Precision precision,
            Routing routing,
            int tokens,
            double sampledRate,
            LogProbGap gap,
            double otherExperts) {}

    /** Draws all rounds and scores them; of a mixture of experts the same tokens with and without their routing replayed. */
    public List<Mismatch> measure(Precision precision) {
        int each = plan.sequences() * plan.sampledTokens();
        boolean hasExperts = weights.shape().traits().experts().present();
        float[] sampler = new float[each * plan.rounds()];
        float[] scorer = new float[sampler.length];
        float[] replayed = new float[hasExperts ? sampler.length : 0];
        float[] temperatures = new float[plan.sequences()];
        Arrays.fill(temperatures, 1f);
        double seconds = 0;
        RoutingDifference difference = new RoutingDifference();
        try (SampledSequences sampled = new SampledSequences(
                        engine,
                        weights,
                        plan,
                        new PreparedWeights(precision, plan.placement().packs()));
                ScoringSession scoring = new ScoringSession(engine, weights.shape(), plan.tokenBudget())) {
            for (int round = 0; round < plan.rounds(); round++) {
                sampled.takePrompts();
                long began = System.nanoTime();
                sampled.sample();
                seconds += (System.nanoTime() - began) / 1e9;
                System.arraycopy(sampled.logProbs(), 0, sampler, round * each, each);
                SequenceBatch batch = sampled.batch();
                if (hasExperts) {
                    ScoringSession.Routed own = scoring.scoreRouted(weights, batch, temperatures);
                    RoutedExperts[] routing = sampled.routing();
                    difference.add(routing, own.routing());
                    System.arraycopy(own.scores().logProbs(), 0, scorer, round * each, each);
                    float[] through = scoring.score(weights, batch.routed(routing), temperatures)
                            .logProbs();
                    System.arraycopy(through, 0, replayed, round * each, each);
                } else {
                    float[] scores = scoring.score(weights, batch, temperatures).logProbs();
                    System.arraycopy(scores, 0, scorer, round * each, each);
                }
            }
        }
        double rate = sampler.length / seconds;
        List<Mismatch> found = new ArrayList<>();
        found.add(new Mismatch(
                precision,
                hasExperts ? Routing.OWN : Routing.DENSE,
                sampler.length,
                rate,
                LogProbGap.between(sampler, scorer),
                difference.share()));
        if (hasExperts) {
            found.add(new Mismatch(
                    precision,
                    Routing.REPLAYED,
                    sampler.length,
                    rate,
                    LogProbGap.between(sampler, replayed),
                    difference.share()));
        }
        return found;
    }

    /** How often two engines' routers choose otherwise, where both are noted. */
    private static final class RoutingDifference {
        private long choices;
        private long others;

        void add(RoutedExperts[] generator, RoutedExperts[] scorer) {
            for (int s = 0; s < generator.length; s++) {
                for (int token = 0; token < generator[s].tokens(); token++) {
                    for (int layer = 0; layer < generator[s].layers(); layer++) {
                        if (generator[s].isNoted(token, layer)) {
                            choices++;
                            others +=
                                    chosen(generator[s], token, layer).equals(chosen(scorer[s], token, layer)) ? 0 : 1;
                        }
                    }
                }
            }
        }

        private static Set<Byte> chosen(RoutedExperts routing, int token, int layer) {
            Set<Byte> chosen = new HashSet<>();
            for (int i = 0; i < routing.perToken(); i++) {
                chosen.add(routing.ids()[routing.at(token, layer) + i]);
            }
            return chosen;
        }

        double share() {
            return choices == 0 ? 0 : (double) others / choices;
        }
    }
}
