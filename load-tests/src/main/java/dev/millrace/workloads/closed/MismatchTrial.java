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
 * One set of weights in two engines: one samples in a given precision, the scorer's scores. Shows the gap between
 * behavior and old log-probs without staleness.
 */
public final class MismatchTrial {
    private final Engine engine;
    private final Weights weights;
    private final EnginePlan plan;

    public MismatchTrial(Engine engine, Weights weights, EnginePlan plan) {
        this.engine = engine;
        this.weights = weights;
        this.plan = plan;
    }

    /** Experts used by the scorer's engine. */
    public enum Routing {
        DENSE,
        /** Chosen by the scorer's router. */
        OWN,
        /** Recorded by the generator's router. */
        REPLAYED
    }

    /**
     * @param tokens compared over all rounds
     * @param otherExperts share of differing router choices per token and layer; 0 without experts
     */
    public record Mismatch(
            Precision precision,
            Routing routing,
            int tokens,
            double sampledRate,
            LogProbGap gap,
            double otherExperts) {}

    /** Draws and scores all rounds; mixtures of experts with and without replayed routing. */
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

    /** Share of differing choices of two routers. */
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
