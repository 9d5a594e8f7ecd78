package dev.millrace.corrections.stage;

/** A stage that shapes rewards, before advantages are taken: {@link StageBatch#reward}. */
public interface RewardStage extends Stage {}
