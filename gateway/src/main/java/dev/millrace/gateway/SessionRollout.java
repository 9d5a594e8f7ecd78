package dev.millrace.gateway;

import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.sampling.VerifiedCredit;
import dev.millrace.schemas.Agent;
import dev.millrace.schemas.Branch;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.TurnDetails;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A branch as rollout: text before its first turn is the prompt, sampled tokens are trained, the rest is context. */
final class SessionRollout implements Transcript {
    /** Without an agent name. */
    private static final String UNNAMED = "agent";

    private final Session session;
    private final ReleasedSample sample;
    private final @Nullable Branch goesOnFrom;
    private final List<SessionTurn> branch;
    private final int[] prompt;
    private final int[] tokens;
    private final byte[] mask;
    private final float[] logProbs;
    private final float[] tempered;
    private final List<Turn> turns = new ArrayList<>();
    private final List<VersionSpan> spans = new ArrayList<>();

    SessionRollout(Session session, PlayedTurn last) {
        this(session, session.sample(), last.branch(), null);
    }

    /**
     * The last turns of a branch.
     *
     * @param own trained turns; everything before is the prompt
     * @param goesOnFrom rollout with the prefix; null for none
     */
    SessionRollout(Session session, ReleasedSample sample, List<PlayedTurn> own, @Nullable Branch goesOnFrom) {
        this.session = session;
        this.sample = sample;
        this.goesOnFrom = goesOnFrom;
        this.branch = own.stream().map(PlayedTurn::record).toList();
        this.prompt = own.get(0).promptTokens();
        int length = 0;
        for (int i = 0; i < branch.size(); i++) {
            length += PackedInts.length(branch.get(i).getSampledTokens())
                    + (i == 0 ? 0 : PackedInts.length(branch.get(i).getContextTokens()));
        }
        this.tokens = new int[length];
        this.mask = new byte[length];
        this.logProbs = new float[length];
        this.tempered = new float[length];
        int at = 0;
        for (int i = 0; i < branch.size(); i++) {
            at = put(branch.get(i), i == 0, at);
        }
        endLastSpanAt(length);
    }

    private int put(SessionTurn turn, boolean isFirst, int from) {
        int at = from;
        if (!isFirst) {
            int[] context = PackedInts.toArray(turn.getContextTokens());
            System.arraycopy(context, 0, tokens, at, context.length);
            at += context.length;
            if (context.length > 0) {
                turns.add(new Turn(Speaker.ENVIRONMENT, from, at, null));
            }
        }
        int[] sampled = PackedInts.toArray(turn.getSampledTokens());
        System.arraycopy(sampled, 0, tokens, at, sampled.length);
        System.arraycopy(PackedFloats.toArray(turn.getBehaviorLogProbs()), 0, logProbs, at, sampled.length);
        if (turn.getTemperedLogProbs() != null) {
            System.arraycopy(PackedFloats.toArray(turn.getTemperedLogProbs()), 0, tempered, at, sampled.length);
        }
        Arrays.fill(mask, at, at + sampled.length, (byte) 1);
        turns.add(new Turn(
                Speaker.POLICY,
                at,
                at + sampled.length,
                new TurnDetails(
                        turn.getFinishReason(),
                        null,
                        null,
                        turn.getStartedAtMs(),
                        turn.getFirstTokenAtMs(),
                        turn.getFinishedAtMs(),
                        turn.getUsage())));
        for (VersionSpan span : turn.getVersionSpans()) {
            begin(span.getVersion(), at + span.getStart());
        }
        return at + sampled.length;
    }

    /** Text in between belongs to the following span. */
    private void begin(long version, int position) {
        if (!spans.isEmpty() && spans.get(spans.size() - 1).getVersion() == version) {
            return;
        }
        endLastSpanAt(position);
        spans.add(new VersionSpan(version, position, position));
    }

    private void endLastSpanAt(int position) {
        if (!spans.isEmpty()) {
            VersionSpan last = spans.remove(spans.size() - 1);
            spans.add(new VersionSpan(last.getVersion(), last.getStart(), position));
        }
    }

    int policyTurns() {
        return branch.size();
    }

    /** The run's own reward. */
    VerifiedReward judged() {
        PromptRequest request = session.sample().prompt().request();
        return session.sample()
                .prompt()
                .environment()
                .begin(new EpisodeStart(
                        session.sample().name(),
                        PackedInts.toArray(branch.get(0).getContextTokens()),
                        request.getEnvironmentState()))
                .verify(this);
    }

    /**
     * @param status null for the last turn's
     * @param error null for none
     */
    Rollout record(
            VerifiedReward verdict,
            @Nullable FinishReason status,
            @Nullable String error,
            String generatorId,
            String policyId,
            EngineIdentity engine,
            long nowMs) {
        PromptRequest request = sample.prompt().request();
        SessionTurn first = branch.get(0);
        LogProbDistribution distribution = first.getLogProbDistribution();
        return Rollout.newBuilder()
                .setRunId(request.getRunId())
                .setEpoch(request.getEpoch())
                .setRolloutId(sample.name())
                .setGroupId(request.getGroupId())
                .setOrdinal(request.getOrdinal())
                .setSampleIndex(sample.index())
                .setGroupSize(request.getSamples())
                .setGeneratorId(generatorId)
                .setEnvironment(request.getEnvironment())
                .setTokenizerHash(request.getTokenizerHash())
                .setPromptTokens(PackedInts.of(prompt))
                .setResponseTokens(PackedInts.of(tokens))
                .setMask(PackedMask.of(mask))
                .setBehaviorLogProbs(PackedFloats.of(logProbs))
                .setLogProbDistribution(distribution)
                .setTemperedLogProbs(distribution == LogProbDistribution.TRUNCATED ? PackedFloats.of(tempered) : null)
                .setSampling(sampling(first.getSampling()))
                .setTurns(turns)
                .setVersionSpans(spans)
                .setReward(verdict.reward())
                .setRewardComponents(verdict.components())
                .setFinishReason(
                        status != null ? status : branch.get(branch.size() - 1).getFinishReason())
                .setAdmittedVersion(request.getAdmittedVersion())
                .setStartedAtMs(first.getStartedAtMs())
                .setFinishedAtMs(branch.get(branch.size() - 1).getFinishedAtMs())
                .setError(error)
                .setSampler(new Sampler(
                        policyId, null, new Agent(session.agent() == null ? UNNAMED : session.agent(), true), engine))
                .setTask(request.getTask())
                .setSamplingTrace(trace())
                .setCredit(VerifiedCredit.of(verdict, turns))
                .setBranch(goesOnFrom)
                .build();
    }

    private SamplingParameters sampling(SamplingParameters ofTurn) {
        return SamplingParameters.newBuilder(ofTurn)
                .setMaxTokens(Math.max(ofTurn.getMaxTokens(), tokens.length))
                .setSeed(session.sample().prompt().request().getSampling().getSeed())
                .build();
    }

    /** Concatenated rows, one per trained token. */
    private @Nullable SamplingTrace trace() {
        if (branch.get(0).getSamplingTrace() == null) {
            return null;
        }
        List<SamplingTrace> traces =
                branch.stream().map(SessionTurn::getSamplingTrace).toList();
        TopLogProbs top = traces.get(0).getTopLogProbs();
        KeptSupport kept = traces.get(0).getKeptTokens();
        return new SamplingTrace(
                top == null
                        ? null
                        : new TopLogProbs(
                                top.getK(),
                                joined(traces.stream()
                                        .map(each -> each.getTopLogProbs().getTokenIds())
                                        .toList()),
                                joined(traces.stream()
                                        .map(each -> each.getTopLogProbs().getLogProbs())
                                        .toList()),
                                joined(traces.stream()
                                        .map(each -> each.getTopLogProbs().getRemainderLogProbs())
                                        .toList())),
                kept == null
                        ? null
                        : new KeptSupport(
                                joined(traces.stream()
                                        .map(each -> each.getKeptTokens().getCounts())
                                        .toList()),
                                joined(traces.stream()
                                        .map(each -> each.getKeptTokens().getTokenIds())
                                        .toList())),
                null,
                null);
    }

    private static ByteBuffer joined(List<ByteBuffer> parts) {
        ByteBuffer all = ByteBuffer.allocate(
                parts.stream().mapToInt(ByteBuffer::remaining).sum());
        parts.forEach(part -> all.put(part.duplicate()));
        return all.flip();
    }

    static VerifiedReward given(double reward, Map<String, Double> components, List<Double> turnRewards) {
        return new VerifiedReward(reward, components).withTurnRewards(turnRewards);
    }

    @Override
    public int length() {
        return tokens.length;
    }

    @Override
    public int token(int position) {
        return tokens[position];
    }

    @Override
    public boolean byPolicy(int position) {
        return mask[position] != 0;
    }
}
