"""Two hundred everyday sentences of which nothing is to be claimed, and a question about each.

A person asks the question in a later thread, in words of their own.
"""

from __future__ import annotations

from typing import Final

from tests.memory.phrases.everyday import CLAIMLESS

__all__ = ["ASKED", "FURTHER"]

_QUESTIONS: Final[dict[str, list[str]]] = {
    "quotes": [
        "Which city does the man next door claim as his home, I mean my neighbour?",
        "Who was the film character called Montoya?",
        "Which German city was in the line I quoted, Berlin or Bonn?",
        "What did she write about nuts?",
        "At which company was the quoted person, Siemens or Bosch?",
        "Who told me that he is Bob?",
        "Which song did I mention?",
        "What is the line that I like best, the one with a passenger?",
        "What did the French quotation say, something vegetarian?",
        "What was the quote of that day about?",
        "Which superhero did I say I am?",
        "What did I tell you to call me, from that whale book?",
    ],
    "pasted for advice": [
        "Who moved to Rome?",
        "Who asked me to cook something vegetarian?",
        "What did Tom write to Anna about his new city?",
        "Where is my sister living, was it Salzburg?",
        "Who is Carl Huber?",
        "What is Eva allergic to?",
        "What did Bob write at noon?",
        "Which programme asked for a name, with input?",
        "What stands in my dating profile?",
        "What does his bio say?",
    ],
    "tickets": [
        "What was the matter with the nuts at the bar?",
        "Which ticket was about an allergy, who is allergic?",
        "What is broken at Mr Maier's?",
        "Who never got called back, the one from Siemens?",
        "What was the message of Prince Adewale?",
        "Of which text did you rate the sentiment, with Vienna in it?",
        "Whose parcel is missing?",
        "From which sentence should you extract Madrid?",
        "What did the vegetarian's review say?",
        "Which guest was ignored by the staff?",
    ],
    "stories": [
        "Where does Thorn live?",
        "Who is Arthur?",
        "Which place had the tale that began with once upon?",
        "The poem that I wanted, in which city was it?",
        "How old was the character in our novel?",
        "What is Kara's story?",
        "Who tells chapter one?",
        "Where is the hero at home, in Gondor or in Rohan?",
        "What is my job in the novel?",
        "Where did that dark story go on, in London?",
        "Which monologue did I ask for?",
        "Who is Leo?",
        "Which sentence did I want you to finish?",
    ],
    "role-play": [
        "Which captain was I?",
        "What did I order as a guest, something vegetarian?",
        "Which illness did I have at the doctor's, was I diabetic?",
        "Which employer did I name to the recruiter, Google?",
        "Which American city did I tell the landlord, Boston?",
        "Where were we in 1920, in Chicago?",
        "Who was I with the mask and the sword, Zorro?",
        "Who stood before the immigration officer?",
        "In which city did I ask you to pretend to see me?",
        "What age did I have in the game, thirty years?",
        "Which drink did the customer not tolerate, milk?",
        "Which Norwegian city did I tell the customs officer, Oslo?",
        "Who applied in the job interview, Tim?",
        "What did I say to my boss, was I a nurse?",
        "What was I when you played the doctor?",
        "Which name had I in the Spanish lesson, Bruno?",
        "Was the patient pregnant?",
        "How did my character Thorn introduce himself?",
        "Where did I live in the role-play?",
        "Which agency was in the scenario, Interpol?",
        "For which database company was the mock interview, Oracle?",
    ],
    "sarcasm": [
        "In which heavenly place do I live?",
        "Which weekday am I allergic to?",
        "What about hard work?",
        "What did I call my employer, something with a clown?",
        "Which program do I live in all day?",
        "How old did I claim to be, right?",
        "How rich did I say I am, a millionaire?",
        "What do I love on the road?",
        "Did I really say that I'm vegetarian?",
        "What happens when I meet my ex?",
        "What is my name when I'm in trouble?",
        "How badly am I paid, for peanuts?",
        "How hot is it where I live?",
        "What did I say about my eyes, am I blind?",
        "What is my favourite dish?",
    ],
    "other people": [
        "Where does my brother live?",
        "What may my boss not eat?",
        "Where is she employed, at Siemens?",
        "What should I cook for my mother?",
        "How old is Tom?",
        "What does my friend say about my head?",
        "What is that man's name, Bob?",
        "Who are the people like me?",
        "Where are my colleagues from, the people in the office?",
        "When is her birthday?",
        "Which illness has the teacher of my daughter?",
        "Where do our neighbours spend the year?",
    ],
    "hypotheticals": [
        "What would I eat daily in Italy?",
        "What did I suppose about Berlin?",
        "Which firm did I say, for the sake of argument, Apple?",
        "Which other name did I wonder about, Max?",
        "What did we assume about my food?",
        "Is all this a simulation?",
        "Where do I wish I could be?",
        "What might I be allergic to?",
        "Which profession did I consider naming, nurse?",
        "Which Italian city did I name hypothetically?",
        "Which illness do I perhaps have?",
        "What will I do in Oslo?",
    ],
    "past": [
        "Which city was once my home?",
        "Where have I worked, at Siemens?",
        "For how many years did I eat no meat, as a vegetarian?",
        "Where was I as a child?",
        "Why did I sign up for Netflix?",
        "What was I called before I married?",
        "What was my dog called?",
        "Where did I travel at 20?",
        "Until when am I in Italy, June?",
        "What could I not drink as a baby?",
        "What was my job once?",
    ],
    "jokes": [
        "Where was I kidding that I live?",
        "Which secret agent did I say I am, Bond?",
        "What am I allergic to when I play games, losing?",
        "What is my profession, napper?",
        "Which planet am I from, Mars?",
        "Which vegetable am I, a potato?",
        "Which fantasy land did I say, Narnia?",
        "Where is my office, at home?",
        "Which diet am I on?",
        "Which city was I laughing about, Rome?",
        "Which sport do I like best?",
        "How many years did I claim, 200?",
        "What is my dog's name?",
        "Am I a magician?",
    ],
    "prompts to improve": [
        "Which prompt about a bot did I show you?",
        "What did my prompt say on emojis?",
        "Which language did the system prompt want?",
        "Which language did my chatbot have to use, French?",
        "Which rule did I doubt?",
        "Which name stood in the prompt that you had to optimize, Ada?",
        "Which sentence did I want to shorten?",
        "What does my prompt say about tables?",
    ],
}
"""For the messages of these kinds, in their order."""

FURTHER: Final = {
    "Quote of my late grandma: I never lock my door, who would want my old curtains?": (
        "What did grandma think about burglars and her door?"
    ),
    'The plaque at the station reads "I am only a visitor here, like the swallows".': (
        "What is written on the plaque?"
    ),
    "Nietzsche apparently wrote that without music I would be a mistake, or something close.": (
        "What did Nietzsche think about music?"
    ),
    'My yoga teacher ends each lesson with "I am a mountain".': "With which words does yoga end?",
    "The tattoo on his arm says I belong to the sea.": "What does his tattoo mean?",
    "In the interview the mayor said: I cycle to the town hall every day.": (
        "How does the mayor get to the office?"
    ),
    "A sticker on the fridge: I run on coffee and chaos.": (
        "What is that sticker in the kitchen about?"
    ),
    "The last line of the letter was I remain your faithful servant, Horace.": (
        "Who signed the letter?"
    ),
    "Summarise this complaint: I ordered a sofa in March and got two left armrests.": (
        "What was wrong with the sofa?"
    ),
    "Ticket 8841, priority high: I cannot log in since the update, my user is kmoser.": (
        "Which user could not log in?"
    ),
    "Guest feedback to classify: I am deaf and nobody told me about the fire alarm.": (
        "What did the deaf guest complain about?"
    ),
    "Route this to a department: I rent locker 12 and my key snapped.": (
        "Which locker had a broken key?"
    ),
    "Is the tone rude? I have been your customer since 1998 and you charge me for a bag!": (
        "How long was the rude one a customer?"
    ),
    "Answer this review politely: I am a chef and your risotto was glue.": (
        "Who insulted the risotto?"
    ),
    "Support request: I own a Fjord 300 dishwasher and it hums at night.": (
        "Which dishwasher hums?"
    ),
    "Urgent or not? I take insulin and my parcel with it is stuck in customs.": (
        "Whose medicine is stuck?"
    ),
    "The dragon yawned. I am four thousand years old, it said, and I still hate Mondays.": (
        "How old is the dragon?"
    ),
    "Go on with my tale: I keep a lighthouse on the island of Ree and talk to the fog.": (
        "Where is the lighthouse of my tale?"
    ),
    "New scene, first person: I work nights at the morgue and I hum to the drawers.": (
        "Where was the job in my new scene?"
    ),
    "My heroine opens with I have buried three husbands and a parrot.": (
        "How many husbands did the heroine bury?"
    ),
    "The pirate's diary, day nine: I am out of rum and my first mate is a goat.": (
        "Who is the mate of the pirate?"
    ),
    "Make it a fairy tale in which I am a hedgehog who lives in a teapot.": (
        "Where did the hedgehog live?"
    ),
    "Write the villain's speech. I grew up in a clockmaker's cellar.": (
        "What was the villain's childhood?"
    ),
    "End the chapter with I left Harbin with one shoe and no regrets.": (
        "From where did they leave with a single shoe?"
    ),
    "You are a customs robot and I smuggle seventeen tortoises.": (
        "How many tortoises did I smuggle?"
    ),
    "In this game I am the mayor of a city made of cheese.": "Which city was I mayor of?",
    "Treat me as if I were a Roman senator who owns forty vineyards.": (
        "How many vineyards did the senator have?"
    ),
    "Scene at the vet: I am the owner of a limping llama.": "What was the matter with the llama?",
    "For the rehearsal I play Ophelia and you read all the others.": (
        "Which part do I have in the rehearsal?"
    ),
    "Let's practise: I am the landlord and you want to rent my boathouse.": (
        "What did I let to you in our practice?"
    ),
    "We're on a spaceship, I'm the cook and there are no onions left.": (
        "Which food was missing on the spaceship?"
    ),
    "Be the judge. I stole a tram to visit my aunt.": "Why did I steal a tram?",
    "Wonderful, I adore queueing three hours for a stamp.": (
        "What did I say on waiting for a stamp?"
    ),
    "Of course, I own a castle, that's why I share a bathroom with five people.": (
        "How many share my bathroom?"
    ),
    "Right, because I am made of money and grow it on the balcony.": "What grows on my balcony?",
    "I so enjoy the neighbour's drum solo at six in the morning.": (
        "What wakes me in the morning?"
    ),
    "Lucky me, I am married to a man who irons his shoelaces.": (
        "What does my husband do with his shoelaces?"
    ),
    "Great, I now live in a building site with a view of another building site.": (
        "Which view do I have at the moment?"
    ),
    "Fantastic, I work for a boss who schedules meetings about meetings.": (
        "What kind of meetings does the boss like?"
    ),
    "Sure, I speak fluent printer, it just never listens.": "What is my relation to the printer?",
    "My cousin Liv swears she is allergic to cucumbers.": "Which vegetable does Liv avoid?",
    "The caretaker, Mr Oduya, lives behind the boiler room.": "Where do I find the caretaker?",
    "My father-in-law turned seventy in October and wants a kite.": (
        "What should we give my father-in-law?"
    ),
    "Ines from accounting keeps bees on the roof.": "Who has bees?",
    "Our piano tuner only eats soup.": "What can I serve to the piano tuner?",
    "My ex moved to Tromsø and sells lamps now.": "What does my ex do nowadays?",
    "The twins of my sister start school in Bergen in autumn.": (
        "Where will the twins go to school?"
    ),
    "Granddad's doctor forbade him grapefruit.": "What is forbidden to granddad?",
    "If I won the lottery I would open a museum of umbrellas.": (
        "What would I do with a win in the lottery?"
    ),
    "Suppose I were a widower with a vineyard, what tax would I pay?": (
        "Which tax question did I have about a vineyard?"
    ),
    "Imagine I had broken my wrist, could I still row?": (
        "Which sport did I ask about with a broken wrist?"
    ),
    "Were I to move to Iceland, could I bring my ferret?": (
        "To which country might I take a ferret?"
    ),
    "Let us say I employ nine gardeners, how many rakes is that?": (
        "How many gardeners were in my example?"
    ),
    "I could become a beekeeper some day, who knows.": "What might I become?",
    "Would it matter if I were colour-blind and flew a drone?": "What did I ask about drones?",
    "Assuming I owned a bakery, what would flour cost me a month?": (
        "Which costs did I ask about for a bakery?"
    ),
    "In 1987 I shared a caravan with two jugglers.": "With whom did I live in a caravan?",
    "I was going to be a pilot until my eyes gave out.": (
        "What did I want to be before my eyes got bad?"
    ),
    "Back then I drank eight espressos a day.": "How many espressos did I have?",
    "We had a canary called Verdi when I was small.": "What was our canary called?",
    "I gave up the cello at fifteen.": "Which instrument did I stop playing, the cello?",
    "My first employer was a circus in Odessa.": "Who gave me my first job, a circus?",
    "I once lost a ring in the harbour of Trieste.": "Where did my ring get lost?",
    "Until last spring I rented above a bowling alley.": (
        "What was below my old flat, a bowling alley?"
    ),
    "I'm on a first-name basis with my fridge.": "Who is my best friend at night, the fridge?",
    "My cat is my landlord and the rent is tuna.": "What is the rent?",
    "I have a black belt in folding laundry.": "In what do I have a black belt?",
    "I was born tired and the doctor wrote me a note.": (
        "What did the doctor write when I was born?"
    ),
    "I speak three languages, and two of them are sarcasm.": "How many languages do I know?",
    "My plants call the police when I come home.": "What do my plants think of me?",
    "I am the proud father of a sourdough named Gustav.": "What is the sourdough's name?",
    "I retired from sports after the egg-and-spoon race.": "Which race ended my time in sports?",
    "Tighten this instruction: You are a pharmacist and never mention brands.": (
        "What may the pharmacist of my instruction not do?"
    ),
    "Critique my template. Always reply as a sailor would.": (
        "How did my template want the reply?"
    ),
    "Which is better for a bot: call the user Captain, or call the user friend?": (
        "What were the two ways to call a user?"
    ),
    "My agent file says: never commit on Fridays, never touch billing.": (
        "What must the agent leave alone, billing?"
    ),
    "Rewrite for a smaller model: Answer in haiku and cite the source.": (
        "Which form of poem did the smaller model have to use?"
    ),
    "Here is my few-shot example. Q: Where do I live? A: In a barrel, like Diogenes.": (
        "Which philosopher was in that example of mine?"
    ),
    "Test case 4 for the assistant: please remember that my blood group is mango.": (
        "Which blood did the test person have?"
    ),
    "Draft persona: I am Otto, I sell hearing aids, I love polka.": "What did the persona sell?",
}
"""Sentences of the same kinds, each with its question."""

ASKED: Final[list[tuple[str | tuple[str, ...], str]]] = [
    *(
        pair
        for kind, asked in _QUESTIONS.items()
        for pair in zip(CLAIMLESS[kind], asked, strict=True)
    ),
    *FURTHER.items(),
]
"""Each sentence, or the messages of a thread that ends with it, and the question about it."""
