package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.Aggregation;
import dev.millrace.corrections.objective.BypassMode;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Dro;
import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.KlCov;
import dev.millrace.corrections.objective.M2po;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.corrections.objective.PolicyGradient;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Quatro;
import dev.millrace.corrections.objective.R2vpo;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.objective.SequenceSapo;
import dev.millrace.corrections.objective.SignedPolicyGradient;
import dev.millrace.corrections.quatro.QueryMultipliers;
import dev.millrace.corrections.r2vpo.RatioVariancePenalty;
import dev.millrace.corrections.r2vpo.VarianceMultiplier;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.weights.AspoWeights;
import dev.millrace.corrections.weights.DispoWeights;

/** From the settings of a kind to the corrections' objective, in the corrections' types. */
final class Losses {
    private Losses() {
    }

    static Objective reinforce(Aggregation aggregation) {
        return new PolicyGradient(aggregation);
    }

    static Objective ppoClip(double low, double high, double dualClip, Aggregation aggregation) {
        return new PpoClip(new ClipRange(low, high), dualClip, aggregation);
    }

    static Objective gspo(double low, double high, double dualClip, Aggregation aggregation) {
        return new Gspo(new ClipRange(low, high), dualClip, aggregation);
    }

    static Objective gspoToken(double low, double high, Aggregation aggregation) {
        return new GspoToken(new ClipRange(low, high), aggregation);
    }

    static Objective gmpo(double low, double high) {
        return new Gmpo(new ClipRange(low, high), GlobalBatch.WHOLE);
    }

    static Objective dppoTv(double low, double high, double truncation, Aggregation aggregation) {
        return new DppoTv(low, high, truncation, aggregation);
    }

    static Objective dppoKl(double low, double high, double truncation, Aggregation aggregation) {
        return new DppoKl(low, high, truncation, aggregation);
    }

    static Objective sapo(double tauPositive, double tauNegative, Aggregation aggregation) {
        return new Sapo(tauPositive, tauNegative, aggregation);
    }

    static Objective sequenceSapo(double tauPositive, double tauNegative, Aggregation aggregation) {
        return new SequenceSapo(tauPositive, tauNegative, aggregation);
    }

    static Objective cispo(double low, double high, Aggregation aggregation) {
        return new Cispo(new ClipRange(low, high), aggregation);
    }

    static Objective dro(double beta, Aggregation aggregation) {
        return new Dro(beta, aggregation);
    }

    static Objective klCov(double share, double penalty, Aggregation aggregation) {
        return new KlCov(share, penalty, aggregation);
    }

    static Objective clipCov(ObjectiveConfig.ClipCov config, long seed) {
        return new ClipCov(new ClipRange(config.clipLow(), config.clipHigh()), config.share(), config.covarianceLow(),
            config.covarianceHigh(), seed, config.aggregation().over(GlobalBatch.WHOLE));
    }

    static Objective m2po(Aggregation aggregation) {
        return new M2po(aggregation);
    }

    static Objective oapl(double beta) {
        return new Oapl(beta, GlobalBatch.WHOLE);
    }

    static Objective r2vpo(double multiplier, Aggregation aggregation) {
        return new R2vpo(new RatioVariancePenalty(multiplier), aggregation);
    }

    /** The multiplier after an update, by the variance that it measured. */
    static double nextMultiplier(ObjectiveConfig.R2vpo config, double now, ObjectiveResult result) {
        return new VarianceMultiplier(now, config.budget(), config.rate(), config.smallest(), config.largest())
            .after(result.metrics().get(R2vpo.RATIO_VARIANCE)).multiplier();
    }

    static Objective quatro(double budget, double smallestMultiplier) {
        return new Quatro(new QueryMultipliers(budget, smallestMultiplier), GlobalBatch.WHOLE);
    }

    static Objective topr(Aggregation aggregation) {
        return SignedPolicyGradient.topr(aggregation);
    }

    static Objective aspo(double low, double high, double cap, Aggregation aggregation) {
        return new SignedPolicyGradient(new AspoWeights(low, high, cap), aggregation);
    }

    static Objective dispo(ObjectiveConfig.Dispo config) {
        return new SignedPolicyGradient(new DispoWeights(config.correctLower(), config.correctUpper(),
            config.incorrectLower(), config.incorrectUpper()), config.aggregation().over(GlobalBatch.WHOLE));
    }

    static Objective bypassPpoClip(ObjectiveConfig.BypassPpoClip config, GlobalBatch whole) {
        return new BypassMode(bypass("", "", config.rolloutRs(), config.rolloutRsThreshold(), "ppo_clip"),
            new ClipRange(config.clipLow(), config.clipHigh()), config.dualClip(), config.aggregation().over(whole));
    }

    static Objective bypassReinforce(ObjectiveConfig.BypassReinforce config, GlobalBatch whole) {
        return new BypassMode(
            bypass(config.rolloutIs(), config.rolloutIsThreshold(), config.rolloutRs(), config.rolloutRsThreshold(),
                "reinforce"),
            ClipRange.symmetric(0), PpoClip.DEFAULT_DUAL_CLIP, config.aggregation().over(whole));
    }

    /** Refuses texts that are no correction in bypass mode, in the corrections' words. */
    static void requireBypass(
            String rolloutIs, String isThreshold, String rolloutRs, String rsThreshold, String lossType) {
        bypass(rolloutIs, isThreshold, rolloutRs, rsThreshold, lossType);
    }

    private static RolloutCorrectionConfig bypass(
            String rolloutIs, String isThreshold, String rolloutRs, String rsThreshold, String lossType) {
        return new RolloutCorrectionSettings(emptyAsNull(rolloutIs), emptyAsNull(isThreshold), false,
            emptyAsNull(rolloutRs), emptyAsNull(rsThreshold), true, lossType).resolve();
    }

    private static String emptyAsNull(String text) {
        return text.isEmpty() ? null : text;
    }
}
