"""Eighty everyday sentences of which nothing is to be claimed, and a question about each.

A person asks the question in a later thread, in words of their own.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ASKED"]

ASKED: Final = {
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
"""The sentences, each with its question."""
