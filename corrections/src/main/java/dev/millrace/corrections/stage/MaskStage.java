package dev.millrace.corrections.stage;

/** A stage that takes tokens out of the update: {@link StageBatch#mask}. */
public interface MaskStage extends Stage {}
