package journal

// format is the version of the layout of records, and a part of their keys. A replica neither reads nor removes
// records of other versions, so replicas of two versions can share a bucket during an update or a rollback. Increase it
// with each change that an older replica would misread.
const format = "1"
