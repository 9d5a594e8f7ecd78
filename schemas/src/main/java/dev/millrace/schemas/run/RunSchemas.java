package dev.millrace.schemas.run;

import dev.millrace.schemas.Admission;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.RunClaim;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.SessionEvent;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.WeightChunk;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.Schema;

/** Record schema of each topic, as written by this version of Millrace. */
public final class RunSchemas {
    private RunSchemas() {}

    /** Topic name to schema, for every topic but the dead letters, which hold anything. */
    public static Map<String, Schema> byTopic(RunTopics topics) {
        Map<String, Schema> schemas = new LinkedHashMap<>();
        schemas.put(topics.run(), RunClaim.getClassSchema());
        schemas.put(topics.prompts(), PromptRequest.getClassSchema());
        schemas.put(topics.rollouts(), Rollout.getClassSchema());
        schemas.put(topics.scores(), Score.getClassSchema());
        schemas.put(topics.rewards(), Reward.getClassSchema());
        schemas.put(topics.referenceScores(), Score.getClassSchema());
        schemas.put(topics.teacherScores(), Score.getClassSchema());
        schemas.put(topics.trajectories(), Trajectory.getClassSchema());
        schemas.put(topics.batches(), LearnerBatch.getClassSchema());
        schemas.put(topics.policyVersions(), PolicyVersion.getClassSchema());
        schemas.put(topics.weights(), WeightChunk.getClassSchema());
        schemas.put(topics.optimizerState(), WeightChunk.getClassSchema());
        schemas.put(topics.trainingLog(), TrainingStep.getClassSchema());
        schemas.put(topics.serving(), Serving.getClassSchema());
        schemas.put(topics.outcomes(), Outcome.getClassSchema());
        schemas.put(topics.admission(), Admission.getClassSchema());
        schemas.put(topics.sessions(), SessionEvent.getClassSchema());
        schemas.put(topics.evaluations(), VersionEvaluation.getClassSchema());
        return schemas;
    }

    /** Subject (topic name and {@code -value}) to schema. */
    public static Map<String, Schema> bySubject(RunTopics topics) {
        Map<String, Schema> schemas = new LinkedHashMap<>();
        byTopic(topics).forEach((topic, schema) -> schemas.put(subject(topic), schema));
        return schemas;
    }

    public static String subject(String topic) {
        return topic + "-value";
    }
}
