package dev.millrace.log.run;

import static org.apache.kafka.common.acl.AclOperation.CREATE;
import static org.apache.kafka.common.acl.AclOperation.DELETE;
import static org.apache.kafka.common.acl.AclOperation.DESCRIBE;
import static org.apache.kafka.common.acl.AclOperation.DESCRIBE_CONFIGS;
import static org.apache.kafka.common.acl.AclOperation.READ;
import static org.apache.kafka.common.acl.AclOperation.WRITE;
import static org.apache.kafka.common.resource.ResourceType.GROUP;
import static org.apache.kafka.common.resource.ResourceType.TOPIC;
import static org.apache.kafka.common.resource.ResourceType.TRANSACTIONAL_ID;

import dev.millrace.log.transaction.LogTable;
import dev.millrace.schemas.run.RunTopics;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.PatternType;

/**
 * The least rights of each role of a run on a cluster with ACLs. {@code READ}, {@code WRITE} and {@code DELETE} imply {@code DESCRIBE}, which is
 * listed where it is needed alone.
 */
public enum RoleRights {
    /** Creates the run. One of its roles has these rights beside its own. */
    CREATOR,
    ADMISSION,
    GENERATOR,
    GATEWAY,
    SCORER,
    REFERENCE,
    TEACHER,
    TOPOLOGY,
    LEARNER,
    EVALUATOR,
    /** Every command that only reads: ledger, trace, doctor, replay, export, view, evaluate without {@code --follow}. */
    READER;

    /** As people write it. */
    public String lowerCase() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** What the topics of a preflight begin with, and its group and transactional id. */
    public static String ofPreflight(RunTopics topics) {
        return topics.prefix() + "preflight-";
    }

    /**
     * The list.
     *
     * @param schemasTopic empty where a registry keeps the schemas
     */
    public List<Right> of(RunTopics topics, String schemasTopic) {
        String prefix = topics.prefix();
        List<Right> rights = new ArrayList<>();
        if (this == CREATOR) {
            rights.add(Right.under(TOPIC, prefix, READ, DESCRIBE_CONFIGS, CREATE));
            rights.add(written(topics.run(), topics.files()));
            List<String> tables = new ArrayList<>(List.of(topics.run(), topics.files()));
            if (!schemasTopic.isEmpty()) {
                rights.add(Right.on(TOPIC, schemasTopic, READ, WRITE, DESCRIBE_CONFIGS, CREATE));
                tables.add(schemasTopic);
            }
            rights.add(new Right(
                    TRANSACTIONAL_ID,
                    PatternType.LITERAL,
                    tables.stream().map(LogTable::transactionalId).toList(),
                    List.of(WRITE)));
            rights.add(Right.under(TOPIC, ofPreflight(topics), WRITE, DELETE));
            rights.add(Right.under(GROUP, ofPreflight(topics), READ));
            rights.add(Right.under(TRANSACTIONAL_ID, ofPreflight(topics), WRITE));
            return rights;
        }
        AclOperation[] reading =
                this == READER ? new AclOperation[] {READ} : new AclOperation[] {READ, DESCRIBE_CONFIGS};
        rights.add(Right.under(TOPIC, prefix, reading));
        if (!schemasTopic.isEmpty()) {
            rights.add(Right.on(TOPIC, schemasTopic, reading));
        }
        rights.add(Right.under(GROUP, prefix, DESCRIBE));
        switch (this) {
            case ADMISSION -> rights.addAll(writing(prefix + "admission", topics.prompts(), topics.admission()));
            case GENERATOR ->
                rights.addAll(writing(prefix + "generator", topics.rollouts(), topics.serving(), topics.deadLetters()));
            case GATEWAY -> // in the generators' group, under their ids
                rights.addAll(writing(
                        prefix + "generator",
                        topics.rollouts(),
                        topics.serving(),
                        topics.deadLetters(),
                        topics.sessions()));
            case SCORER -> rights.addAll(writing(prefix + "scorer", topics.scores(), topics.serving()));
            case REFERENCE -> rights.addAll(writing(prefix + "reference", topics.referenceScores(), topics.serving()));
            case TEACHER -> rights.addAll(writing(prefix + "teacher", topics.teacherScores(), topics.serving()));
            case TOPOLOGY -> {
                rights.addAll(writing(
                        prefix + "topology",
                        topics.trajectories(),
                        topics.batches(),
                        topics.outcomes(),
                        topics.deadLetters()));
                rights.add(Right.under(TOPIC, prefix + "topology", WRITE, CREATE)); // changelogs
            }
            case LEARNER -> {
                rights.addAll(writing(
                        prefix + "learner",
                        topics.policyVersions(),
                        topics.weights(),
                        topics.optimizerState(),
                        topics.trainingLog(),
                        topics.deadLetters()));
                rights.add(
                        new Right( // of versions that are no longer needed
                                TOPIC,
                                PatternType.LITERAL,
                                List.of(topics.weights(), topics.optimizerState()),
                                List.of(DELETE)));
            }
            case EVALUATOR -> rights.addAll(writing(prefix + "evaluator", topics.evaluations(), topics.serving()));
            default -> {}
        }
        return rights;
    }

    private static Right written(String... topics) {
        return new Right(TOPIC, PatternType.LITERAL, List.of(topics), List.of(WRITE));
    }

    /**
     * Of a role that writes in transactions.
     *
     * @param ids what its groups and transactional ids begin with
     */
    private static List<Right> writing(String ids, String... topics) {
        return List.of(written(topics), Right.under(GROUP, ids, READ), Right.under(TRANSACTIONAL_ID, ids, WRITE));
    }
}
